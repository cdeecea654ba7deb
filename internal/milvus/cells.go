package milvus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// reloadEvery is the interval at which the directory of cells is read. Kubernetes updates the files of
// a Secret within about a minute anyway.
const reloadEvery = 2 * time.Second

// Load replaces the cells by those in a directory, which has a file <cell>.json with a
// placement.Connection for each. A missing directory contains none.
func (r *Router) Load(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list cells: %w", err)
	}
	connections := map[string]placement.Connection{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), placement.ConnectionSuffix)
		if !ok || name == "" || strings.HasPrefix(name, ".") { // Kubernetes' own entries
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read cell %s: %w", name, err)
		}
		var c placement.Connection
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("parse %s: %w", entry.Name(), err)
		}
		connections[name] = c
	}
	r.set(connections)
	return nil
}

// Watch loads a directory whenever it changes, until the context ends. After an error, the
// cells remain as they are.
func (r *Router) Watch(ctx context.Context, dir string) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := r.Load(dir)
		if err != nil && err.Error() != failed {
			r.log.WarnContext(ctx, "load cells failed; will be retried", "error", err)
			failed = err.Error()
		}
		if err == nil {
			failed = ""
		}
	}
}

// set replaces all cells but the default one. Unchanged ones keep their connection.
func (r *Router) set(connections map[string]placement.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, c := range r.cells {
		if connection, ok := connections[name]; name != "" && (!ok || connection != c.connection) {
			r.log.Info("cell disconnected", "cell", name)
			delete(r.cells, name)
			c.closeLater()
		}
	}
	for name, connection := range connections {
		if r.cells[name] == nil {
			r.log.Info("cell added", "cell", name, "address", connection.Address)
			r.cells[name] = &cell{connection: connection}
		}
	}
}

// closeLater closes the connection when running calls have ended.
func (c *cell) closeLater() {
	if c.index != nil {
		time.AfterFunc(closeDelay, func() { _ = c.index.Close() })
	}
}

func configOf(c placement.Connection) (Config, error) {
	config := Config{Address: c.Address, Username: c.Username, Password: c.Password}
	if c.CA != "" || strings.HasPrefix(c.Address, "https://") {
		config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.CA != "" {
		config.TLS.RootCAs = x509.NewCertPool()
		if !config.TLS.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return Config{}, fault.New(fault.Unavailable, "ca.crt in the Secret contains no certificate")
		}
	}
	return config, nil
}
