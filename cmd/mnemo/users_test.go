package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func TestUsers(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	spec.OIDC = tenant.OIDC{Issuer: "https://id.test", Domains: []string{spec.Namespace + ".test"}}
	e.apply(t, spec)
	email := "ann@" + spec.Namespace + ".test"
	session := tenant.HashSecret(uuid.NewString())
	signIn := func() error {
		return e.db.SignInExternal(t.Context(), tenant.ExternalSignIn{ExternalUser: tenant.ExternalUser{Issuer: "https://id.test", Subject: "1", Email: email},
			Address: "192.0.2.1", Session: session, Lifetime: 1 << 40})
	}
	if err := signIn(); err != nil {
		t.Fatal(err)
	}
	id := "--tenant=" + string(spec.ID)
	if out := e.mnemo(t, "users", "list", id); !strings.Contains(out, email+"   active") || strings.Contains(out, "removed") {
		t.Errorf("users list printed %q", out)
	}
	e.expectOutput(t, "ended the access of 1 users", "users", "remove", id, email)
	if _, err := e.db.Session(t.Context(), session); err == nil {
		t.Error("the session survives")
	}
	if err := signIn(); err == nil {
		t.Error("a removed user signs in")
	}
	if out := e.mnemo(t, "users", "list", id); !strings.Contains(out, email+" was removed by mnemo users remove") {
		t.Errorf("users list printed %q", out)
	}
	for _, bad := range []string{"", "ann", " " + email, email + " ", "ann@a@b"} {
		e.expectError(t, "must be an email address", "users", "remove", id, bad)
	}
	for _, command := range []string{"list", "remove", "restore"} {
		for _, unknown := range []string{"nope", uuid.NewString()} {
			args := []string{"users", command, "--tenant=" + unknown, email}
			if command == "list" {
				args = args[:3]
			}
			e.expectError(t, "tenant "+unknown+" not found", args...)
		}
	}
	id = "--tenant=" + spec.Namespace + "/" + spec.Name
	e.expectOutput(t, "restored", "users", "restore", id, email)
	e.expectError(t, "no administrator removed", "users", "restore", id, email)
}
