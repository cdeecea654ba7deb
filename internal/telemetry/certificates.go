package telemetry

import "crypto/tls"

// Certificate returns a tls.Config.VerifyConnection function that records when
// the certificate of a dependency expires. It verifies nothing.
func (m *Metrics) Certificate(dependency string) func(tls.ConnectionState) error {
	return func(c tls.ConnectionState) error {
		if len(c.PeerCertificates) > 0 {
			m.certificates.WithLabelValues(dependency).Set(float64(c.PeerCertificates[0].NotAfter.Unix()))
		}
		return nil
	}
}
