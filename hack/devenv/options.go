package devenv

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Options are common to all programs.
type Options struct {
	// Dir is the run directory: data, logs and process records are below it. A
	// program started again in the same Dir has the same data, password and port.
	Dir string
	// Cache provides the program's files; its Progress receives the steps.
	Cache *Cache
	// Durable keeps data through a power failure. Tests run faster without it.
	Durable bool
	// Port is the port on 127.0.0.1; 0 selects a free one.
	Port int
	// TLS, when set, signs the certificate of PostgreSQL and of Milvus, which
	// then refuse plain connections.
	TLS *Authority
}

// Settings are a program's ports and passwords, kept between starts in its
// directory's settings.json.
type Settings struct {
	// Ports are by their use.
	Ports map[string]int `json:"ports,omitempty"`
	// Passwords are by the user they are of.
	Passwords map[string]string `json:"passwords,omitempty"`
}

// LoadSettings reads the settings in dir; a missing file gives empty ones.
func LoadSettings(dir string) (Settings, error) {
	s := Settings{Ports: map[string]int{}, Passwords: map[string]string{}}
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

// ChoosePort sets the port for a use: the one asked for, else the one used the
// last time if it is still free, else a free one. It fails when the port asked
// for is taken; what names its user in the error.
func (s Settings) ChoosePort(use, what string, asked int) error {
	port, err := choosePort(what, asked, s.Ports[use])
	if err != nil {
		return err
	}
	s.Ports[use] = port
	return nil
}

// EnsurePassword returns the password of a user, a random one of 130 bits the
// first time.
func (s Settings) EnsurePassword(user string) string {
	if s.Passwords[user] == "" {
		s.Passwords[user] = rand.Text()
	}
	return s.Passwords[user]
}

// Save writes the settings, which hold passwords, for their owner only.
func (s Settings) Save(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, "settings.json"), data, 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
