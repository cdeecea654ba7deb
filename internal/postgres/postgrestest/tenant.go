package postgrestest

import (
	"crypto/rand"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// ApplyTenant creates a tenant and returns the token of a user.
func ApplyTenant(t *testing.T, d Database) string {
	t.Helper()
	db, spec := Open(t, d), tenanttest.NewSpec()
	if _, err := db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	token := NewToken(t)
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
	if err := db.Install(t.Context(), spec.ID, spec.Users[0].Name, credential); err != nil {
		t.Fatal(err)
	}
	return token
}

// NewToken returns a random token.
func NewToken(t *testing.T) string {
	t.Helper()
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Version returns a text that changes with every write to the rows of a tenant, its users, quota, placement and tokens.
func Version(t *testing.T, owner *pgxpool.Pool, id tenant.ID) string {
	t.Helper()
	var out string
	err := owner.QueryRow(t.Context(), `select concat_ws(' ',
		(select xmin from tenants where id = $1), (select xmin from quotas where tenant_id = $1), (select xmin from usage where tenant_id = $1),
		(select xmin from placements where tenant_id = $1), (select xmin from placement_migrations where tenant_id = $1),
		(select string_agg(xmin::text, ',' order by id) from users where tenant_id = $1),
		(select string_agg(xmin::text, ',' order by user_id, generation) from tokens where tenant_id = $1))`, id).Scan(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Fill inserts rows and updates their counters, as the application does.
func Fill(t *testing.T, owner *pgxpool.Pool, s tenant.Scope, memories, conversations int) {
	t.Helper()
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(`insert into buckets (tenant_id, user_id, name, name_key, is_default) values ($1, $2, 'General', 'general', true) on conflict do nothing`, s.Tenant, s.User)
	for range memories {
		run(`with u as (update users set memory_seq = memory_seq + 1, memories = memories + 1 where tenant_id = $1 and id = $2 returning memory_seq),
			b as (update buckets set memories = memories + 1 where tenant_id = $1 and user_id = $2 and is_default returning id),
			m as (insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
				select $1, $2, $3, memory_seq, b.id, 'text', 1 from u, b returning id)
			insert into memory_versions (tenant_id, user_id, memory_id, version, text) select $1, $2, id, 1, 'text' from m`,
			s.Tenant, s.User, uuid.NewString())
		run("update usage set memories = memories + 1, storage = storage + 4 where tenant_id = $1", s.Tenant)
	}
	for range conversations {
		run(`insert into conversations (tenant_id, user_id, id, external_id, platform, status, import_id, created_at, updated_at)
			values ($1, $2, $3::uuid, $3::uuid::text, 'custom', 'active', $3::uuid, now(), now())`, s.Tenant, s.User, uuid.NewString())
		run("update usage set conversations = conversations + 1 where tenant_id = $1", s.Tenant)
		run("update users set conversations = conversations + 1 where tenant_id = $1 and id = $2", s.Tenant, s.User)
	}
}
