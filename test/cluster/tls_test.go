package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/internal/milvus"
)

// storesOverTLS checks that the release connects to both stores over TLS, verifies their
// certificates with the CA in the Secret, and that the stores refuse plain connections.
func storesOverTLS(t *testing.T) {
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	certificate := kubectl(t, "", "get", "secret", "stores-ca", "--namespace", namespace, "--output", "go-template={{index .data \"ca.crt\" | base64decode}}")
	if err := os.WriteFile(trusted, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	untrusted, err := devenv.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("PostgreSQL", func(t *testing.T) { postgresOverTLS(t, trusted, untrusted.File()) })
	t.Run("Milvus", func(t *testing.T) { milvusOverTLS(t, trusted, untrusted.File()) })
}

func postgresOverTLS(t *testing.T, trusted, untrusted string) {
	configured, err := url.Parse(variable(t, "DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := configured.Query().Get("sslmode"); mode != "verify-full" {
		t.Errorf("sslmode of the API server is %s, want verify-full", mode)
	}
	as := func(secret, mode, authority string) string {
		u := *configured
		u.User = url.UserPassword(login(t, secret))
		u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {authority}}.Encode()
		return u.String()
	}

	for _, secret := range []string{"mnemo-app", "mnemo-owner"} {
		if conn, err := pgx.Connect(t.Context(), as(secret, "disable", "")); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s: connected without TLS", secret)
		} else if !strings.Contains(err.Error(), "no encryption") {
			t.Errorf("%s without TLS: %v, want an error that contains %q", secret, err, "no encryption")
		}
	}
	message := waitFor(t, as("mnemo-app", "verify-full", untrusted))
	for _, want := range []string{"certificate not trusted", "postgres.ca"} {
		if !strings.Contains(message, want) {
			t.Errorf("`mnemo wait` with another CA: %s, want an error that contains %q", message, want)
		}
	}

	settings, err := devenv.LoadSettings(postgres.Dir(cluster.dir))
	if err != nil {
		t.Fatal(err)
	}
	superuser := *configured
	superuser.User = url.UserPassword("postgres", settings.Passwords["postgres"])
	superuser.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {trusted}}.Encode()
	conn, err := pgx.Connect(t.Context(), superuser.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var all, encrypted int
	if err := conn.QueryRow(t.Context(), `select count(*), count(*) filter (where ssl) from pg_stat_ssl join pg_stat_activity using (pid)
		where usename in ('mnemo_app', 'mnemo_owner')`).Scan(&all, &encrypted); err != nil {
		t.Fatal(err)
	}
	if all < 3 {
		t.Errorf("%d connections, want at least those of two API servers and the operator", all)
	}
	if encrypted != all {
		t.Errorf("%d of %d connections are encrypted, want all", encrypted, all)
	}
	// The migration has already finished; its connections are in the log.
	log, err := os.ReadFile(filepath.Join(cluster.dir, "logs", "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"mnemo_app", "mnemo_owner"} {
		connections := regexp.MustCompile(`connection authorized: user=`+role+` .*`).FindAllString(string(log), -1)
		if len(connections) == 0 {
			t.Errorf("no connection as %s in the log", role)
		}
		for _, line := range connections {
			if !strings.Contains(line, "SSL enabled") {
				t.Errorf("connection without TLS: %s", line)
			}
		}
	}
}

func milvusOverTLS(t *testing.T, trusted, untrusted string) {
	address := variable(t, "MILVUS_ADDRESS")
	if !strings.HasPrefix(address, "https://") {
		t.Errorf("Milvus address of the API server is %s, want https", address)
	}
	user, password := login(t, "mnemo-milvus")
	ping := func(address, authority string) error {
		config := milvus.Config{Address: address, Username: user, Password: password, Dimensions: 384}
		if authority != "" {
			data, err := os.ReadFile(authority)
			if err != nil {
				t.Fatal(err)
			}
			config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
			config.TLS.RootCAs.AppendCertsFromPEM(data)
		}
		index, err := milvus.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer index.Close()
		return index.Ping(t.Context())
	}
	if err := ping(address, trusted); err != nil {
		t.Errorf("Milvus with the right CA: %v", err)
	}
	err := ping(address, untrusted)
	for _, want := range []string{"certificate not trusted", "milvus.tls"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Milvus with another CA: %v, want an error that contains %q", err, want)
		}
	}
	err = ping(strings.TrimPrefix(address, "https://"), "")
	if want := "milvus.tls.enabled"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Milvus without TLS: %v, want an error that contains %q", err, want)
	}
}

// variable returns an environment variable of the API server.
func variable(t *testing.T, name string) string {
	t.Helper()
	return kubectl(t, "", "get", "deployment", "mnemo-api", "--namespace", namespace,
		"--output", fmt.Sprintf(`jsonpath={.spec.template.spec.containers[0].env[?(@.name==%q)].value}`, name))
}

// login returns the user name and password in a Secret of the release.
func login(t *testing.T, secret string) (user, password string) {
	t.Helper()
	both := kubectl(t, "", "get", "secret", secret, "--namespace", namespace,
		"--output", `go-template={{.data.username | base64decode}} {{.data.password | base64decode}}`)
	user, password, _ = strings.Cut(both, " ")
	return user, password
}

// waitFor runs `mnemo wait` without a timeout, as the init containers do, and returns its
// error.
func waitFor(t *testing.T, database string) string {
	t.Helper()
	_, err := try(t.Context(), "", filepath.Join(cluster.dir, "images", "local"), "wait", "--timeout=0s", "--database-url="+database)
	if err == nil {
		t.Fatal("`mnemo wait` succeeded with an untrusted server")
	}
	return err.Error()
}
