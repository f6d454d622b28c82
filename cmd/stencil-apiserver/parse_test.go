package main

import (
	"crypto/tls"
	"io"
	"slices"
	"strings"
	"testing"

	program "github.com/vmstencil/stencil/internal/server"
)

func inPod(name string) (string, bool) {
	return "stencil-system", name == program.NamespaceVariable
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"--user=system:serviceaccount:a:b", "--kubeconfig=/a", "--certificate-dns-names=a.svc,b.svc", "--zap-log-level=debug"}, inPod, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.certificates.Namespace != "stencil-system" || o.certificates.Names.String() != "a.svc,b.svc" || o.authentication.RemoteKubeConfigFile != "/a" || o.authorization.RemoteKubeConfigFile != "/a" {
		t.Errorf("%+v", o)
	}
}

// TestArgumentsOfKubeVirt parses the arguments of KubeVirt's own server of its template component, v0.2.2, with what virt-operator appends.
func TestArgumentsOfKubeVirt(t *testing.T) {
	o, err := parse([]string{
		"--disable-http2-serving", "--secure-port=9443",
		"--tls-cert-file=/tmp/k8s-api-server/api-cert/tls.crt", "--tls-private-key-file=/tmp/k8s-api-server/api-cert/tls.key",
		"-v", "4", "--tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "--tls-min-version", "VersionTLS12",
	}, inPod, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !o.disableHTTP2 || o.bindAddress != ":9443" || o.certificates.Source != program.SourceFiles || o.certificates.Directory != "/tmp/k8s-api-server/api-cert" {
		t.Errorf("%+v", o)
	}
	if want := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}; !slices.Equal(o.tls.CipherSuites, want) || o.tls.MinVersion != tls.VersionTLS12 {
		t.Errorf("TLS: %+v", o.tls)
	}
	if !o.zap.Level.Enabled(-2) || o.zap.Level.Enabled(-3) {
		t.Errorf("the level of the log is %v", o.zap.Level)
	}
	if _, err := parse([]string{"--tls-cert-file=/a/tls.crt", "--tls-private-key-file=/b/tls.key"}, inPod, io.Discard); err == nil {
		t.Error("files of two directories were accepted")
	}
}

func TestRunWithoutAServer(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments              []string
		want                   int
		wantStdout, wantStderr string
	}{
		"the version is asked for": {arguments: []string{"--version"}, wantStdout: "stencil-apiserver "},
		"help is asked for":        {arguments: []string{"--help"}, wantStderr: "--certificate-authority-secret"},
		"a word that is no flag":   {arguments: []string{"serve"}, want: program.ExitUsage, wantStderr: `stencil-apiserver: arguments are not taken: ["serve"]`},
		"everything that is wrong, at once": {
			arguments: []string{"--max-requests-in-flight=0", "--defaulting-machine-type=newest", "--defaulting-mac=maybe", "--certificate-duration=0s", "--certificate-settle-time=-1s", "--api-services=converting/x"}, want: program.ExitUsage,
			wantStderr: "stencil-apiserver: --max-requests-in-flight: must be positive\n" +
				"--defaulting-machine-type: must be pin or keep, not \"newest\"\n" +
				"--defaulting-mac: must be never or generate, not \"maybe\"\n" +
				"--certificate-duration: must be positive\n" +
				"--certificate-settle-time: must not be negative\n" +
				`--api-services: webhook configuration "converting/x": `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			got := run(t.Context(), tc.arguments, inPod, &stdout, &stderr)
			if got != tc.want || !strings.Contains(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("exit code %d, output %q, error output %q", got, stdout.String(), stderr.String())
			}
		})
	}
}
