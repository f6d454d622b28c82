package server

import (
	"errors"
	"flag"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCertificatesValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"an authority":                      {arguments: []string{"--certificate-authority-namespace=a"}},
		"files":                             {arguments: []string{"--certificate-source=files"}},
		"files without a directory":         {arguments: []string{"--certificate-source=files", "--certificate-directory="}, want: "--certificate-directory: must not be empty"},
		"a source that does not exist":      {arguments: []string{"--certificate-source=vault"}, want: `--certificate-source: must be authority or files, not "vault"`},
		"an authority that is kept nowhere": {want: "--certificate-authority-namespace: must be given outside a pod, or as POD_NAMESPACE"},
		"everything that is wrong, at once": {
			arguments: []string{"--certificate-authority-namespace=a", "--certificate-authority-secret=", "--certificate-duration=24h",
				"--certificate-authority-duration=24h", "--certificate-settle-time=8h", "--certificate-dns-names="},
			want: "--certificate-authority-secret: must not be empty\n" +
				"--certificate-settle-time: must be less than a third of --certificate-duration\n" +
				"--certificate-duration: must be less than --certificate-authority-duration\n" +
				"--certificate-dns-names: must not be empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c Certificates
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			c.Bind(flags)
			if err := flags.Parse(tc.arguments); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := errors.Join(c.Validate()...); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
