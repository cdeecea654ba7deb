package postgres_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres"
)

func TestStringLists(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	conn, err := pgx.Connect(t.Context(), b.owner.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if err := postgres.RegisterLists(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		kind    string
		in      []string
		out     []string // in if nil
		wantErr bool
	}{
		"UUIDs":                {kind: "uuid[]", in: []string{"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
		"UUID in another form": {kind: "uuid[]", in: []string{"{0196B2F46D1E7C3A9F5E2B8D4C6A1E07}"}, out: []string{"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"}},
		"no UUID":              {kind: "uuid[]", in: []string{"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "x"}, wantErr: true},
		"no UUIDs":             {kind: "uuid[]", in: []string{}},
		"texts":                {kind: "text[]", in: []string{"a", "", `{"ü", null}`, "\\"}},
		"no texts":             {kind: "text[]", in: []string{}},
	}
	for name, tt := range tests {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
			var got []string
			err := conn.QueryRow(t.Context(), "select $1::"+tt.kind, mode, tt.in).Scan(&got)
			if tt.wantErr {
				if err == nil {
					t.Errorf("%s, %v: no error", name, mode)
				}
				continue
			}
			if tt.out == nil {
				tt.out = tt.in
			}
			if d := cmp.Diff(tt.out, got); err != nil || d != "" {
				t.Errorf("%s, %v: %v, -want +got\n%s", name, mode, err, d)
			}
		}
	}
	for _, sql := range []string{"select null::uuid[]", "select null::text[]"} {
		got := []string{"before"}
		if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != nil {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	for _, sql := range []string{"select '{{a,b},{c,d}}'::text[]", "select '{a,null}'::text[]", "select array[null::uuid]"} {
		if err := conn.QueryRow(t.Context(), sql).Scan(new([]string)); err == nil {
			t.Errorf("%s: no error", sql)
		}
	}
	var nullable []*string
	if err := conn.QueryRow(t.Context(), "select '{a,null}'::text[]").Scan(&nullable); err != nil || len(nullable) != 2 || nullable[1] != nil {
		t.Errorf("list with null: %v, %v", nullable, err)
	}
}
