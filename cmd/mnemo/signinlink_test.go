package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func TestSignInLink(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	spec.Users = []tenant.UserSpec{{Name: "alice"}, {Name: "bob"}}
	e.apply(t, spec)
	args := []string{"sign-in-link", "--url=https://mnemo.test", "--tenant=" + string(spec.ID), "--user=alice"}
	link, err := url.Parse(strings.TrimSpace(e.mnemo(t, args...)))
	if err != nil || link.Host != "mnemo.test" || link.Path != "/sign-in/link" || len(link.Fragment) != 32 {
		t.Fatalf("link = %s, %v; want https://mnemo.test/sign-in/link#CODE", link, err)
	}
	session := tenant.Hash{1}
	err = e.db.SignInWithLink(t.Context(), tenant.LinkSignIn{Link: tenant.HashSecret(link.Fragment), Session: session, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	who, err := e.db.Session(t.Context(), session)
	if err != nil || who.UserName != "alice" {
		t.Errorf("session of %s, %v; want alice", who.UserName, err)
	}
	if err := e.db.SealRecords(t.Context(), spec.ID, true); err != nil {
		t.Fatal(err)
	}
	records, err := e.db.RecentRecords(t.Context(), who.Scope, 0, 2)
	if err != nil || len(records) != 2 || records[0].Verb != audit.SessionCreate || records[0].Via != tenant.ViaLink ||
		records[1].Verb != audit.SessionLink || records[1].Actor != string(tenant.ActorAdministrator) || records[1].Via != "sign-in-link" {
		t.Errorf("records = %+v, %v; want the link by an administrator and the sign-in", records, err)
	}
	e.expectError(t, "--lifetime must be between 1s and 1h", append(args, "--lifetime=2h")...)
	e.expectError(t, "has no user carol", append(args, "--user=carol")...)
}
