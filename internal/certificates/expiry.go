package certificates

import (
	"crypto/x509"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterExpiry registers a metric of the time when the certificate that the source serves expires; it is 0 as long as there is none.
func RegisterExpiry(registerer prometheus.Registerer, source Source) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stencil_serving_certificate_expiry_timestamp_seconds",
		Help: "When the certificate with which webhooks are served expires, in seconds since the epoch; 0 when there is none.",
	}, func() float64 {
		certificate, err := source.GetCertificate(nil)
		if err != nil || certificate == nil || len(certificate.Certificate) == 0 {
			return 0
		}
		leaf := certificate.Leaf
		if leaf == nil {
			if leaf, err = x509.ParseCertificate(certificate.Certificate[0]); err != nil {
				return 0
			}
		}
		return float64(leaf.NotAfter.Unix())
	})
	if err := registerer.Register(gauge); err != nil {
		return fmt.Errorf("registering the expiry of the serving certificate: %w", err)
	}
	return nil
}
