package telemetry

import "crypto/tls"

// Certificate returns what a TLS connection to a dependency is to be shown
// (tls.Config.VerifyConnection): it notes when the certificate expires, and
// verifies nothing.
func (m *Metrics) Certificate(dependency string) func(tls.ConnectionState) error {
	return func(c tls.ConnectionState) error {
		if len(c.PeerCertificates) > 0 {
			m.certificates.WithLabelValues(dependency).Set(float64(c.PeerCertificates[0].NotAfter.Unix()))
		}
		return nil
	}
}
