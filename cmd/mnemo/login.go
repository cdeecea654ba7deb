package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/mnemo-dev/mnemo/api/client"
)

// login is the server and token that user commands use without MNEMO_URL and
// MNEMO_TOKEN.
type login struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

type loginCommand struct {
	URL   string `arg:"" env:"MNEMO_URL" help:"URL of the API, such as https://mnemo.example.com."`
	Token string `hidden:"" env:"MNEMO_TOKEN"`
}

// Run stores the login after the server has accepted it.
func (c *loginCommand) Run(ctx context.Context, t terminal) error {
	token := c.Token
	if token == "" {
		var err error
		if token, err = t.readSecret("Token: "); err != nil {
			return err
		}
	}
	l := login{URL: withScheme(c.URL), Token: token}
	server, err := client.New(l.URL, l.Token)
	if err != nil {
		return err
	}
	if _, err := server.CountConversations(ctx); err != nil {
		return err
	}
	path, err := l.save()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "logged in to %s; the token is stored in %s\n", l.URL, path)
	return err
}

type logoutCommand struct{}

// Run deletes the stored login. The token stays valid.
func (logoutCommand) Run(t terminal) error {
	path, err := loginPath()
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return errors.New("not logged in")
	} else if err != nil {
		return fmt.Errorf("delete login: %w", err)
	}
	_, err = fmt.Fprintln(t.out, "logged out; the token stays valid until you revoke it in the dashboard")
	return err
}

// readSecret reads a line from standard input, without echo on a terminal.
func (t terminal) readSecret(prompt string) (string, error) {
	var line []byte
	var err error
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		fmt.Fprint(t.err, prompt)
		line, err = term.ReadPassword(fd)
		fmt.Fprintln(t.err)
	} else {
		line, err = io.ReadAll(io.LimitReader(os.Stdin, 1<<16))
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	secret := strings.TrimSpace(string(line))
	if secret == "" {
		return "", errors.New("the token is empty: enter the one from the dashboard or your administrator")
	}
	return secret, nil
}

// loginPath returns the path of the stored login.
func loginPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration directory: %w", err)
	}
	return filepath.Join(dir, "mnemo", "login.json"), nil
}

// save stores the login for the user alone and returns its path.
func (l login) save() (string, error) {
	path, err := loginPath()
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("encode login: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("store login: %w", err)
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return "", fmt.Errorf("store login: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return "", fmt.Errorf("store login: %w", err)
	}
	return path, nil
}

// storedLogin returns the stored login, zero without one.
func storedLogin() (l login, err error) {
	path, err := loginPath()
	if err != nil {
		return login{}, nil //nolint:nilerr // without a home directory, the variables are required
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return login{}, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &l)
	}
	if err != nil {
		return login{}, fmt.Errorf("read %s: %w; run mnemo login again", path, err)
	}
	return l, nil
}

// login returns the server and token of a command. A stored token is sent only to
// the server that it was stored for.
func (f remoteFlags) login() (login, error) {
	stored, err := storedLogin()
	if err != nil && (f.URL == "" || f.Token == "") {
		return login{}, err
	}
	l := login{URL: withScheme(cmp.Or(f.URL, stored.URL)), Token: f.Token}
	if l.URL == "" {
		return login{}, usageError("no server: set MNEMO_URL, such as https://mnemo.example.com, or run mnemo login")
	}
	if l.Token == "" && l.URL == stored.URL {
		l.Token = stored.Token
	}
	if l.Token == "" {
		return login{}, usageError("no token for " + l.URL + ": set MNEMO_TOKEN to the one from the dashboard or your administrator, or run mnemo login")
	}
	return l, nil
}

// withScheme adds the scheme to an address such as localhost:8080: http for
// loopback, otherwise https.
func withScheme(address string) string {
	if address == "" || strings.Contains(address, "://") {
		return strings.TrimSuffix(address, "/")
	}
	host, _, _ := strings.Cut(address, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "localhost" || ip != nil && ip.IsLoopback() {
		return strings.TrimSuffix("http://"+address, "/")
	}
	return strings.TrimSuffix("https://"+address, "/")
}
