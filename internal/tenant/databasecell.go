package tenant

import (
	"fmt"
	"strconv"
	"strings"
)

// DatabaseCell is the number of a PostgreSQL database among those of an installation that has
// outgrown one (docs/adr/0033-database-cells.md). Ids and secrets carry it.
type DatabaseCell int64

const (
	// MaxDatabaseCell is the largest number of a database.
	MaxDatabaseCell DatabaseCell = 1<<12 - 1
	// idsPerCell is the number of ids of a database. All ids are below 2^53, so that they are
	// exact in JSON.
	idsPerCell = 1 << 40
)

// FirstID and LastID limit the ids that the database assigns.
func (c DatabaseCell) FirstID() int64 { return int64(c)*idsPerCell + 1 }

// LastID is the last id that the database assigns.
func (c DatabaseCell) LastID() int64 { return (int64(c) + 1) * idsPerCell }

// String returns the cell as in secrets: 3 hexadecimal digits.
func (c DatabaseCell) String() string { return fmt.Sprintf("%0*x", secretCell, int64(c)) }

// CellOf returns the cell of the database that issued a token, session or sign-in link, for
// components that route requests to databases. It is a hint: a tenant that moved to another
// database keeps its tokens, so only the lookup of the whole secret decides.
func CellOf(secret string) (DatabaseCell, bool) {
	body := secret
	if prefix, tail, ok := strings.Cut(secret, "_"); ok {
		body = strings.TrimSuffix(tail, checksum(prefix+"_"+tail[:max(0, len(tail)-tokenCheck)]))
	}
	if len(body) != tokenBody {
		return 0, false
	}
	n, err := strconv.ParseUint(body[:secretCell], 16, 16)
	return DatabaseCell(n), err == nil
}
