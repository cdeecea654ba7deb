package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// keptRecords returns the imports, ledgers, tokens and idempotency keys of a tenant.
func (b *testBundle) keptRecords(t *testing.T, id tenant.ID) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `
		select format('import %s', platform) from imports where tenant_id = $1
		union all select format('ledger %s', reason) from import_ledger where tenant_id = $1
		union all select format('token %s', generation) from tokens where tenant_id = $1 and generation > 100
		union all select format('key %s', route) from idempotency_keys where tenant_id = $1
		order by 1`, id)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Records that nothing needs any more are deleted for every user, including former
// ones, and only in the tenant that is expired.
func TestExpireRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice, other := b.users[0], tenant.Scope{}
	for _, u := range b.users {
		if u.Tenant != alice.Tenant {
			other = u
		}
	}
	insert := func(u tenant.Scope) {
		t.Helper()
		for _, sql := range []string{
			`insert into imports (tenant_id, user_id, id, platform, status, stored, finished_at) select $1::uuid, $2::bigint, gen_random_uuid(), v.* from (values
				('old', 'done', true, now() - interval '91 days'), ('failed', 'failed', true, now() - interval '91 days'),
				('recent', 'done', true, now() - interval '89 days'), ('running', 'running', false, null::timestamptz)) v`,
			`insert into import_ledger (tenant_id, user_id, import_id, ordinal, outcome, reason)
				select tenant_id, user_id, id, 0, 'skipped', platform from imports where tenant_id = $1::uuid and user_id = $2::bigint`,
			`insert into tokens (tenant_id, user_id, generation, hash, issuer, expires_at) select $1::uuid, $2::bigint, v.g, sha256(convert_to($1::uuid::text || $2::bigint || v.g, 'UTF8')),
				'user', v.at from (values (101, now() - interval '31 days'), (102, now() - interval '29 days'), (103, now() - interval '40 days')) v (g, at)`,
			`insert into idempotency_keys (tenant_id, user_id, route, key, body, created_at) values
				($1, $2, 'old', 'k', 'b', now() - interval '25 hours'), ($1, $2, 'recent', 'k', 'b', now() - interval '23 hours')`,
			`update users set active = false where tenant_id = $1 and id = $2`,
		} {
			if _, err := b.owner.Exec(t.Context(), sql, u.Tenant, u.User); err != nil {
				t.Fatal(err)
			}
		}
	}
	insert(alice)
	insert(other)
	untouched := b.keptRecords(t, other.Tenant)
	if err := b.ExpireRecords(t.Context(), alice.Tenant); err != nil {
		t.Fatal(err)
	}
	want := []string{"import recent", "import running", "key recent", "ledger recent", "ledger running", "token 102", "token 103"}
	if diff := cmp.Diff(want, b.keptRecords(t, alice.Tenant)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(untouched, b.keptRecords(t, other.Tenant)); diff != "" {
		t.Errorf("of the other tenant (-before +after):\n%s", diff)
	}
}

// More rows than one transaction deletes.
func TestExpireManyRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	u := b.users[0]
	if _, err := b.owner.Exec(t.Context(), `insert into idempotency_keys (tenant_id, user_id, route, key, body, created_at)
		select $1, $2, 'r', n::text::bytea, 'b', now() - interval '25 hours' from generate_series(1, 1200) n`, u.Tenant, u.User); err != nil {
		t.Fatal(err)
	}
	if err := b.ExpireRecords(t.Context(), u.Tenant); err != nil {
		t.Fatal(err)
	}
	if got := b.keptRecords(t, u.Tenant); len(got) > 0 {
		t.Errorf("%d keys are left", len(got))
	}
}
