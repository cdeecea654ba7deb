package devenv

import (
	"cmp"
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
	// program that is restarted in the same Dir has the same data, password and port.
	Dir string
	// Cache provides the program's files; its Progress receives the steps.
	Cache *Cache
	// Durable makes data survive a power failure. Tests run faster without it.
	Durable bool
	// Port is the port on 127.0.0.1; 0 selects a free one.
	Port int
	// Env is added to the environment of PostgreSQL.
	Env []string
	// TLS, if set, signs the certificates of PostgreSQL and Milvus, which then
	// refuse plaintext connections.
	TLS *Authority
}

// Settings are a program's ports and passwords. The file settings.json in its
// directory keeps them between starts.
type Settings struct {
	// Ports maps a use to a port.
	Ports map[string]int `json:"ports,omitempty"`
	// Passwords maps a user name to a password.
	Passwords map[string]string `json:"passwords,omitempty"`
}

// LoadSettings reads the settings in dir. They are empty if there is no file.
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
		return s, fmt.Errorf("read settings in %s (remove the directory to start over): %w", dir, err)
	}
	return s, nil
}

// ChoosePort sets the port for a use: the requested port if it is not 0, else the
// previous port if it is still free, else a free one. It returns an error if the
// requested port is in use; owner describes the port's use in that error.
func (s Settings) ChoosePort(use, owner string, requested int) error {
	port, err := choosePort(owner, requested, s.Ports[use])
	if err != nil {
		return err
	}
	s.Ports[use] = port
	return nil
}

// PublicPort is the use of the port of the API.
const PublicPort = "api"

// defaultPublicPort is the port of the API in the first run.
const defaultPublicPort = 8080

// ChoosePublicPort chooses the port of the API: the requested one, else that of the last run, which users have
// configured, else the default; only the first must be free.
func (s Settings) ChoosePublicPort(requested int, progress *Progress) error {
	const owner = "the API (PORT)"
	if requested != 0 {
		return s.ChoosePort(PublicPort, owner, requested)
	}
	port := cmp.Or(s.Ports[PublicPort], defaultPublicPort)
	if s.ChoosePort(PublicPort, owner, port) == nil {
		return nil
	}
	progress.Printf("==> port %d is in use by another program: using another port for the API (choose one with PORT=…)", port)
	return s.ChoosePort(PublicPort, owner, 0)
}

// EnsurePassword returns the password of a user. It generates one with 130 random
// bits if there is none.
func (s Settings) EnsurePassword(user string) string {
	if s.Passwords[user] == "" {
		s.Passwords[user] = rand.Text()
	}
	return s.Passwords[user]
}

// Save writes the settings. Only the owner can read the file, because it contains
// passwords.
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
