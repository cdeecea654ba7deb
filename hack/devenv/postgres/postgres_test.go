package postgres

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func testOptions(t *testing.T) devenv.Options {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	return devenv.Options{Dir: t.TempDir(), Cache: cache}
}

func TestDataSurvivesRestart(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Durable = true
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), p.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE EXTENSION btree_gin; CREATE TABLE kept (id int)`)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	url := p.URL
	if p, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	if p.URL != url {
		t.Errorf("the address or password changed after a restart")
	}
	exec(`SELECT FROM kept`)
}
