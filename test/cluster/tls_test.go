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

// storesOverTLS: the release speaks to both stores over TLS, whose servers it
// checks against the authority in the Secret; they let nobody else in.
func storesOverTLS(t *testing.T) {
	right := filepath.Join(t.TempDir(), "ca.crt")
	certificate := kubectl(t, "", "get", "secret", "stores-ca", "--namespace", namespace, "--output", "go-template={{index .data \"ca.crt\" | base64decode}}")
	if err := os.WriteFile(right, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong, err := devenv.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("PostgreSQL", func(t *testing.T) { postgresOverTLS(t, right, wrong.File()) })
	t.Run("Milvus", func(t *testing.T) { milvusOverTLS(t, right, wrong.File()) })
}

func postgresOverTLS(t *testing.T, right, wrong string) {
	asked, err := url.Parse(variable(t, "DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := asked.Query().Get("sslmode"); mode != "verify-full" {
		t.Errorf("the API server asks PostgreSQL with sslmode %s, want the chart's default", mode)
	}
	as := func(secret, mode, authority string) string {
		u := *asked
		u.User = url.UserPassword(login(t, secret))
		u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {authority}}.Encode()
		return u.String()
	}

	for _, secret := range []string{"mnemo-app", "mnemo-owner"} {
		if conn, err := pgx.Connect(t.Context(), as(secret, "disable", "")); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s connects without TLS", secret)
		} else if !strings.Contains(err.Error(), "no encryption") {
			t.Errorf("%s without TLS: %v, want an error that requires encryption", secret, err)
		}
	}
	said := waitFor(t, as("mnemo-app", "verify-full", wrong))
	if !strings.Contains(said, "certificate not trusted") || !strings.Contains(said, "postgres.ca") {
		t.Errorf("`mnemo wait` with another authority says %s, want what to check", said)
	}

	settings, err := devenv.LoadSettings(postgres.Dir(cluster.dir))
	if err != nil {
		t.Fatal(err)
	}
	superuser := *asked
	superuser.User = url.UserPassword("postgres", settings.Passwords["postgres"])
	superuser.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {right}}.Encode()
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
	if all < 3 || encrypted != all {
		t.Errorf("%d of %d connections are encrypted, want all, of two API servers and the operator", encrypted, all)
	}
	// The migration has come and gone: the log knows.
	log, err := os.ReadFile(filepath.Join(cluster.dir, "logs", "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"mnemo_app", "mnemo_owner"} {
		made := regexp.MustCompile(`connection authorized: user=`+role+` .*`).FindAllString(string(log), -1)
		if len(made) == 0 {
			t.Errorf("the log tells of no connection as %s", role)
		}
		for _, line := range made {
			if !strings.Contains(line, "SSL enabled") {
				t.Errorf("not over TLS: %s", line)
			}
		}
	}
}

func milvusOverTLS(t *testing.T, right, wrong string) {
	address := variable(t, "MILVUS_ADDRESS")
	if !strings.HasPrefix(address, "https://") {
		t.Errorf("the API server asks Milvus at %s, want the chart's default, TLS", address)
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
	if err := ping(address, right); err != nil {
		t.Errorf("Milvus with the right authority: %v", err)
	}
	if err := ping(address, wrong); err == nil || !strings.Contains(err.Error(), "certificate not trusted") || !strings.Contains(err.Error(), "milvus.tls") {
		t.Errorf("Milvus with another authority: %v, want what to check", err)
	}
	if err := ping(strings.TrimPrefix(address, "https://"), ""); err == nil || !strings.Contains(err.Error(), "milvus.tls.enabled") {
		t.Errorf("Milvus without TLS: %v, want it refused with what to check", err)
	}
}

// variable is one of those the API server is given.
func variable(t *testing.T, name string) string {
	t.Helper()
	return kubectl(t, "", "get", "deployment", "mnemo-api", "--namespace", namespace,
		"--output", fmt.Sprintf(`jsonpath={.spec.template.spec.containers[0].env[?(@.name==%q)].value}`, name))
}

// login is what is in a Secret of the release.
func login(t *testing.T, secret string) (user, password string) {
	t.Helper()
	both := kubectl(t, "", "get", "secret", secret, "--namespace", namespace,
		"--output", `go-template={{.data.username | base64decode}} {{.data.password | base64decode}}`)
	user, password, _ = strings.Cut(both, " ")
	return user, password
}

// waitFor runs what new pods wait with, for no time, and returns what it says.
func waitFor(t *testing.T, database string) string {
	t.Helper()
	_, err := try(t.Context(), "", filepath.Join(cluster.dir, "images", "local"), "wait", "--timeout=0s", "--database-url="+database)
	if err == nil {
		t.Fatal("`mnemo wait` trusts every server")
	}
	return err.Error()
}
