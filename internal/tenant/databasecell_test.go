package tenant_test

import (
	"crypto/rand"
	"io"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestSecretsCarryTheCell(t *testing.T) {
	t.Parallel()
	token := func(kind tenant.TokenKind) func(tenant.DatabaseCell, io.Reader) (string, error) {
		return func(cell tenant.DatabaseCell, random io.Reader) (string, error) {
			return tenant.NewTokenOf(kind, cell, random)
		}
	}
	for name, create := range map[string]func(tenant.DatabaseCell, io.Reader) (string, error){
		"API token": tenant.NewToken, "application key": token(tenant.KeyToken), "access token": token(tenant.AccessToken),
		"refresh token": token(tenant.RefreshToken), "code": token(tenant.Code), "session": tenant.NewSession,
	} {
		for _, cell := range []tenant.DatabaseCell{0, 1, 62, 255, tenant.MaxDatabaseCell} {
			secret, err := create(cell, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := tenant.CellOf(secret); got != cell || !ok {
				t.Errorf("the cell of %s %q is %d, %t; want %d", name, secret, got, ok, cell)
			}
		}
	}
}

func TestCellOfRejects(t *testing.T) {
	t.Parallel()
	token, err := tenant.NewToken(7, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "_", "mn_", "mn_007", token[:40], token + "0", "mn_008" + token[6:], "00g" + token[:29]} {
		if cell, ok := tenant.CellOf(s); ok {
			t.Errorf("the cell of %q is %d, want none", s, cell)
		}
	}
}

// JSON numbers are exact up to 2^53, and no two databases assign the same id.
func TestIDsOfCells(t *testing.T) {
	t.Parallel()
	if got := tenant.DatabaseCell(0).FirstID(); got != 1 {
		t.Errorf("the first id of cell 0 is %d, want 1", got)
	}
	if got := tenant.MaxDatabaseCell.LastID(); got > 1<<53 {
		t.Errorf("the last id is %d, which is not exact in JSON", got)
	}
	for cell := range tenant.MaxDatabaseCell {
		if last, next := cell.LastID(), (cell + 1).FirstID(); next != last+1 {
			t.Errorf("cell %d ends at %d, but the next begins at %d", cell, last, next)
		}
	}
}
