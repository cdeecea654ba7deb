package importer_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type object = map[string]any

// tree is a conversation in an export of ChatGPT: a question, and answers of which
// the last is shown, each with what followed it. A regenerated answer adds a branch.
func tree(id string, minute int, dice *rand.Rand) object {
	start := float64(monday.Unix())
	mapping := object{}
	node := func(name, parent, role, text string) string {
		mapping[name] = object{"parent": parent, "message": object{"id": name, "author": object{"role": role},
			"create_time": start + float64(len(mapping)), "content": object{"content_type": "text", "parts": []string{text}}}}
		return name
	}
	question := node(id+"-q", "", "user", fmt.Sprintf("Where is the ferry to island %d?", dice.IntN(2)))
	last := question
	for answer := range 1 + dice.IntN(3) {
		last = node(fmt.Sprintf("%s-a%d", id, answer), question, "assistant", fmt.Sprintf("At pier %d.", answer))
		for i := range dice.IntN(3) {
			last = node(fmt.Sprintf("%s-a%d-%d", id, answer, i), last, "user", fmt.Sprintf("And island %d at %d?", i, dice.IntN(2)))
		}
	}
	return object{"conversation_id": id, "title": fmt.Sprint("Ferries ", minute), "create_time": start,
		"update_time": start + float64(60*minute), "current_node": last, "mapping": mapping}
}

// contents returns what a user has, with the number of units of each message.
func (b *bundle) contents(t *testing.T, scope tenant.Scope) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select format('%s %s %s: %s %s %s %s, %s units', c.external_id, c.title, c.updated_at,
			m.seq, m.external_id, m.created_at, m.text, (select count(*) from units u where u.tenant_id = m.tenant_id
				and u.user_id = m.user_id and u.conversation_id = m.conversation_id and u.seq = m.seq))
		from conversations c join messages m on m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id
		where c.tenant_id = $1 and c.user_id = $2 order by c.external_id, m.seq`, scope.Tenant, scope.User)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Exports of the same account have the same result in any order, with and without
// repetition: the newest state of each conversation.
func TestImportOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	const files, chats = 4, 30
	b := setup(t, nil)
	dice := rand.New(rand.NewPCG(1, 2))
	exports, newest := make([][]object, files+1), make([]object, chats)
	for n := range chats {
		for i, minute := range dice.Perm(files) {
			c := tree(fmt.Sprintf("c-%02d", n), 1+minute, dice)
			exports[i] = append(exports[i], c)
			if minute == files-1 {
				newest[n] = c
			}
		}
	}
	exports[files] = exports[0]
	load := func(scope tenant.Scope, list []object) {
		t.Helper()
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		b.importFile(t, scope, data)
	}
	load(b.carol, newest)
	for _, scope := range []tenant.Scope{b.alice, b.bob} {
		for _, i := range dice.Perm(len(exports)) {
			load(scope, exports[i])
		}
		if diff := cmp.Diff(b.contents(t, b.carol), b.contents(t, scope)); diff != "" {
			t.Errorf("(-newest states +all files):\n%s", diff)
		}
	}
	if n := b.count(t, `units u where not exists (select from messages m where m.tenant_id = u.tenant_id and m.user_id = u.user_id
		and m.conversation_id = u.conversation_id and m.seq = u.seq)`); n != 0 {
		t.Errorf("%d units of removed messages", n)
	}
}

// A file that was exported before another one and is imported after it changes nothing.
func TestImportOfOlderExport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	older := conversations(3)
	newer := conversations(3)
	for i := range newer {
		newer[i].at = newer[i].at.Add(1) // the same in storage precision
		newer[i].messages = append(newer[i].messages, "And at night?", "It is lit.")
	}
	b.importFile(t, b.alice, export(t, newer))
	want := b.contents(t, b.alice)
	if got := b.importFile(t, b.alice, export(t, older)); got.Unchanged != 3 {
		t.Errorf("Unchanged = %d, want 3", got.Unchanged)
	}
	if diff := cmp.Diff(want, b.contents(t, b.alice)); diff != "" {
		t.Errorf("(-newer +newer and older):\n%s", diff)
	}
}
