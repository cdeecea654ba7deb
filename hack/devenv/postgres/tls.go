package postgres

import (
	"os"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// withTLS adds the server arguments that require TLS for all connections. The key file
// must belong to the user that the server runs as.
func withTLS(args []string, dir string, authority *devenv.Authority) ([]string, error) {
	cert, key, err := authority.Server("postgres")
	if err != nil {
		return nil, err
	}
	content := map[string]string{"pg_hba.conf": "hostssl all all all scram-sha-256\n"}
	for name, file := range map[string]string{"server.crt": cert, "server.key": key} {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		content[name] = string(data)
	}
	for name, text := range content {
		if err := writePrivate(filepath.Join(dir, name), text); err != nil {
			return nil, err
		}
	}
	for setting, name := range map[string]string{"hba_file": "pg_hba.conf", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"} {
		args = append(args, "-c", setting+"="+filepath.Join(dir, name))
	}
	// The log of each connection includes its encryption.
	return append(args, "-c", "ssl=on", "-c", "log_connections=on"), nil
}
