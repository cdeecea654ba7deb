package retrievalbench

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// chatLength is the number of messages per conversation of an account.
const chatLength = 40

// newAccount returns a user with n messages in PostgreSQL and the index. Their vectors are random: computing them would take
// minutes, and the time of a search does not depend on them.
func newAccount(tb testing.TB, db *postgres.DB, index *milvus.Index, n int, text func(i int) string) tenant.Identity {
	tb.Helper()
	spec := tenanttest.NewSpec()
	spec.Quota.Conversations, spec.Quota.Storage = 1_000_000, 10<<30
	made, err := db.Apply(tb.Context(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	who := tenant.Identity{Scope: tenant.Scope{Tenant: made.ID, User: made.Users[0].ID}, Quota: spec.Quota, Generation: 1}
	if who.Placement, err = db.EnsurePlacement(tb.Context(), made.ID); err != nil {
		tb.Fatal(err)
	}
	for first := 0; first < n; first += chatLength {
		if _, err := db.Conversations().Upsert(tb.Context(), who.Scope, newChat(first, min(chatLength, n-first), text)); err != nil {
			tb.Fatal(err)
		}
	}
	confirm(tb, db, index, who)
	return who
}

func newChat(first, n int, text func(i int) string) chat.Upsert {
	at := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(first) * time.Hour / 4)
	u := chat.Upsert{ExternalID: fmt.Sprint(first), Platform: platform, PlatformName: platform, Title: "Chat", CreatedAt: at}
	for i := range n {
		u.Messages = append(u.Messages, chat.Message{ExternalID: fmt.Sprint(i), Sender: []chat.Sender{chat.Human, chat.Assistant}[i%2],
			Text: text(first + i), CreatedAt: at.Add(time.Duration(i) * time.Minute)})
	}
	u.Generation, u.Vectors = 1, map[string][]float32{}
	change := chat.Plan(chat.Conversation{}, nil, u, "")
	for _, unit := range change.Units()(change.Written()) {
		u.Vectors[unit.Dense] = randomVector(unit.Dense)
	}
	return u
}

// confirm copies an account's units into the index, as the job does.
func confirm(tb testing.TB, db *postgres.DB, index *milvus.Index, who tenant.Identity) {
	tb.Helper()
	installation.EnsurePartition(tb, who.Placement)
	for after := retrieve.UnitID(0); ; {
		ids, err := db.Live(tb.Context(), who.Tenant, after, 1000)
		if err != nil {
			tb.Fatal(err)
		}
		if len(ids) == 0 {
			return
		}
		after = ids[len(ids)-1]
		units, err := db.Load(tb.Context(), who.Tenant, ids)
		if err != nil {
			tb.Fatal(err)
		}
		entries := make([]indexing.Entry, len(units))
		for i, u := range units {
			entries[i] = indexing.Entry{ID: u.ID, User: int64(u.User), Kind: u.Kind, Group: u.Group, Vector: u.Vectors[who.Generation]}
		}
		if err := index.Upsert(tb.Context(), who.Tenant, who.Placement, entries); err != nil {
			tb.Fatal(err)
		}
		if err := db.Confirm(tb.Context(), who.Tenant, []tenant.UserID{who.User}, ids); err != nil {
			tb.Fatal(err)
		}
	}
}

// randomVector returns a vector of length 1 that depends on the text only.
func randomVector(text string) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	out, sum := make([]float32, dimensions), 0.0
	for i := range out {
		x := r.NormFloat64()
		out[i] = float32(x)
		sum += x * x
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

// sentence returns words of which some are frequent and many are rare, as in a language.
func sentence(r *rand.Rand, n int) string {
	const syllables = "ba de fi go ku la me ni po ru sa te vi wo zu "
	words := make([]string, n)
	for i := range words {
		x := r.Float64()
		for rank := int(3000 * x * x * x); ; rank /= 15 {
			words[i] += syllables[rank%15*3 : rank%15*3+2]
			if rank < 15 {
				break
			}
		}
	}
	return strings.Join(words, " ")
}
