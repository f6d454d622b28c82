package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlagsOfTransfersThatAreInvalid(t *testing.T) {
	const account, image = "--transfer-account=system:serviceaccount:stencil-system:stencil-transfers", "--transfer-image=ghcr.io/vmstencil/stencil-mover:v1"
	for want, arguments := range map[string][]string{
		"--transfer-image: must be set with --transfer-account":        {account},
		`--transfer-cpu: must be a positive quantity, not "many"`:      {account, image, "--transfer-cpu=many"},
		`--transfer-memory: must be a positive quantity, not "0"`:      {account, image, "--transfer-memory=0"},
		`--transfer-max-size: must be a positive quantity, not "-1Gi"`: {account, image, "--transfer-max-size=-1Gi"},
		"--transfer-limit: must be at least 1, not 0":                  {account, image, "--transfer-limit=0"},
		"--transfer-limit-per-namespace: must be at least 1, not 0":    {account, image, "--transfer-limit-per-namespace=0"},
		`--transfer-networks: netip.ParsePrefix("10.0.0.0"): no '/'`:   {account, image, "--transfer-networks=10.0.0.0"},
		"--transfer-ingress-domain: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')": {account, image, "--transfer-ingress-domain=*.example.com"},
		"--transfer-ingress-domain: must be no more than 209 characters": {account, image, "--transfer-ingress-domain=" + strings.Repeat("a.", 104) + "aa"},
		"--transfer-ingress-annotations: must be a JSON object with values that are strings: json: cannot unmarshal bool into Go value of type string": {
			account, image, "--transfer-ingress-domain=example.com", `--transfer-ingress-annotations={"a": true}`,
		},
		"": {account, image, "--transfer-ingress-domain=" + strings.Repeat("a.", 104) + "a", `--transfer-ingress-annotations={"a": "b,c"}`},
	} {
		o, err := parse(append(arguments, "--leader-election-namespace=stencil-system", "--certificate-authority-namespace=stencil-system"), environmentOf(nil), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := o.transfers.settings("stencil-system"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: error %q, want %q", arguments, got, want)
		}
	}
}
