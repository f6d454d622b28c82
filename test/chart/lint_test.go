package chart

import "testing"

func TestLint(t *testing.T) {
	cases := map[string]string{
		"the defaults":                   `{}`,
		"a manager outside the cluster":  `{manager: {enabled: false}, webhooks: {url: "https://localhost:9443"}}`,
		"certificates from cert-manager": `{certificates: {provider: cert-manager}}`,
		"a certificate that exists":      secretValues,
		"everything optional":            `{manager: {metrics: {serviceMonitor: {enabled: true}}, pprof: {enabled: true}}}`,
		"defaults that guests see":       `{defaulting: {enabled: true}}`,
	}
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := helm(t, values, "lint", "--strict", "--kube-version", "1.30.0", "--values", "-", chartFolder(t))
			if !ok {
				t.Errorf("helm lint: %s%s", stdout, stderr)
			}
		})
	}
}
