package devenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// PKI is a directory with keys and certificates.
type PKI struct{ Dir string }

// Path returns the path of a file in the directory.
func (p PKI) Path(name string) string { return filepath.Join(p.Dir, name) }

// IssueCA creates a self-signed certificate authority and writes ca.key and ca.crt.
func (p PKI) IssueCA(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, err := p.Issue("ca", ca, nil, nil)
	return ca, key, err
}

// Issue writes name.key and name.crt, signed by ca, or self-signed if ca is nil.
func (p PKI) Issue(name string, cert, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	if ca == nil {
		ca, caKey = cert, key
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	// An hour in the past, in case the clock is adjusted while the machine boots.
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(10, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	if err := writePEM(p.Path(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return key, writePEM(p.Path(name+".key"), "EC PRIVATE KEY", keyDER)
}

func writePEM(path, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}
