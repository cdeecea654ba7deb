package parts

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Options are common to all parts.
type Options struct {
	// Dir is the run directory: data, logs and process records go below it. A
	// part started again on the same Dir has its data, password and port again.
	Dir string
	// Cache brings what the part needs; its Progress is told of the steps.
	Cache *Cache
	// Durable asks for data that survives a power cut. Tests do without and
	// are faster.
	Durable bool
	// Port is where the part listens on 127.0.0.1; 0 chooses a free one.
	Port int
}

// settings is what a part remembers between starts, in <part>/settings.json.
type settings struct {
	Port     int            `json:"port"`
	Ports    map[string]int `json:"ports,omitempty"`
	Password string         `json:"password,omitempty"`
}

// loadSettings reads the settings in dir; a missing file gives empty ones.
func loadSettings(dir string) (settings, error) {
	var s settings
	data, err := os.ReadFile(filepath.Join(dir, "settings.json"))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read settings in %s (remove the directory to start anew): %w", dir, err)
	}
	return s, nil
}

// save writes the settings, which hold a password, for their owner only.
func (s settings) save(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "settings.json"), data, 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

// newPassword returns a random password of letters and digits, 130 bits.
func newPassword() string { return rand.Text() }
