package main

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// asSuperuser returns the URL of the database for the superuser, as a new server has it.
func asSuperuser(t *testing.T, d postgrestest.Database) string {
	t.Helper()
	super, err := url.Parse(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	owner, err := url.Parse(d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	super.Path = owner.Path
	return super.String()
}

// TestDevReplacesOnlyAnotherToken: a client keeps its token over restarts, and a token that is no longer given is revoked.
func TestDevReplacesOnlyAnotherToken(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	c := devCommand{OwnerURL: asSuperuser(t, e.Database), URL: &url.URL{Scheme: "http", Host: "localhost"}, Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0"}
	start := func(token string) tenant.Hash {
		t.Helper()
		c.Token = token
		log := slog.New(slog.DiscardHandler)
		databaseURL, err := c.prepareDatabase(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		server, err := c.server(databaseURL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.prepareUser(t.Context(), server, log); err != nil {
			t.Fatal(err)
		}
		return tenant.HashSecret(c.Token)
	}
	first := start("")
	e.expectValid(t, "generated token", first)
	if again := start(c.Token); again != first {
		t.Errorf("the token given at a restart was replaced")
	}
	e.expectValid(t, "token after a restart", first)
	second := start("")
	e.expectValid(t, "token of a start without one", second)
	e.expectRevoked(t, "token that was not given", first)
}

// TestDevRefusesTheDatabaseOfAnInstallation: it would add a tenant that the operator does not know.
func TestDevRefusesTheDatabaseOfAnInstallation(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	e.apply(t, tenanttest.NewSpec())
	t.Setenv("DATABASE_OWNER_URL", asSuperuser(t, e.Database))
	err := run(t.Context(), []string{"dev"})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "use an empty database") {
		t.Errorf("dev: %v, want Conflict", err)
	}
}

func TestDevExplainsInvalidSettings(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                           "--database-owner-url must have the form postgres://",
		"--database-owner-url=mnemo": "--database-owner-url must have the form postgres://",
		"--database-owner-url=postgres://localhost/ --token=secret": "--token must have the form of an API token",
	} {
		err := run(t.Context(), append([]string{"dev"}, strings.Fields(args)...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mnemo dev %s: %v, want %q", args, err, want)
		}
	}
}
