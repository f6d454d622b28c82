package server

import (
	"crypto/tls"
	"flag"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
)

// TLS are the flags that limit TLS connections to a server. They are those that KubeVirt's virt-operator appends to the arguments of its components.
type TLS struct {
	// MinVersion is the oldest version, at least tls.VersionTLS12.
	MinVersion uint16
	// CipherSuites of connections with TLS 1.2. Empty means the default of Go.
	CipherSuites []uint16
}

// Bind registers the flags, with their defaults.
func (t *TLS) Bind(flags *flag.FlagSet) {
	t.MinVersion = tls.VersionTLS12
	flags.Func("tls-min-version", "Oldest version of TLS that is accepted: VersionTLS12 or VersionTLS13. Default VersionTLS12, which older ones mean as well.", func(text string) error {
		version, err := cliflag.TLSVersion(text)
		t.MinVersion = max(version, tls.VersionTLS12)
		return err
	})
	flags.Func("tls-cipher-suites", "Cipher suites of connections with TLS 1.2, separated by commas, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. If empty, those of Go.", func(text string) (err error) {
		t.CipherSuites = nil
		if text != "" {
			t.CipherSuites, err = cliflag.TLSCipherSuites(strings.Split(text, ","))
		}
		return err
	})
}

// Limit sets the limits in the configuration of a server.
func (t *TLS) Limit(config *tls.Config) {
	config.MinVersion, config.CipherSuites = t.MinVersion, t.CipherSuites
}
