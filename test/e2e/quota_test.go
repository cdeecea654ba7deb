package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// TestRaisedQuota imports more than the quota allows and then raises the quota with
// kubectl, twice. It reads the result from PostgreSQL, so that no request to the API
// server can have been the cause.
func TestRaisedQuota(t *testing.T) {
	t.Parallel()
	const conversations = 12
	setQuota := func(n int) { applyTenant(t, "raised", fmt.Sprintf("  quota: {conversations: %d}\n", n)) }
	setQuota(3)
	alice := connect(t, secret(t, "raised", "alice", "token"))
	id := alice.importFile(t, claudeConversations(t, conversations))
	eventually(t, time.Minute, func() string {
		got, err := alice.GetImport(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if b := got.Body; b.Status != client.ImportStatusDone || b.Imported != conversations || b.Blocked != conversations-3 {
			return fmt.Sprintf("the import is %+v", b)
		}
		return ""
	})
	active := func() []string {
		return query[string](t, `select c.title from conversations c join tenants t on t.id = c.tenant_id
			where t.name = 'raised' and c.status = 'active' order by c.title desc`)
	}
	newest := func(n int) (titles []string) {
		for i := conversations; len(titles) < n; i-- {
			titles = append(titles, fmt.Sprintf("Talk %02d", i))
		}
		return titles
	}
	if got := active(); !slices.Equal(got, newest(3)) {
		t.Fatalf("with a quota of 3, %q are active", got)
	}
	for _, n := range []int{7, conversations} {
		setQuota(n)
		eventually(t, time.Minute, func() string {
			if got := active(); !slices.Equal(got, newest(n)) {
				return fmt.Sprintf("with a quota of %d, %q are active", n, got)
			}
			return ""
		})
	}
	if n := alice.count(t); n != conversations {
		t.Errorf("count is %d, want %d", n, conversations)
	}
}

// claudeConversations returns a Claude export with n conversations, one per day.
func claudeConversations(t *testing.T, n int) string {
	t.Helper()
	type message struct {
		UUID    string    `json:"uuid"`
		Text    string    `json:"text"`
		Sender  string    `json:"sender"`
		Created time.Time `json:"created_at"`
	}
	type conversation struct {
		UUID     string    `json:"uuid"`
		Name     string    `json:"name"`
		Created  time.Time `json:"created_at"`
		Updated  time.Time `json:"updated_at"`
		Messages []message `json:"chat_messages"`
	}
	var all []conversation
	for i := 1; i <= n; i++ {
		at := time.Date(2026, 3, i, 9, 0, 0, 0, time.UTC)
		all = append(all, conversation{fmt.Sprint("talk-", i), fmt.Sprintf("Talk %02d", i), at, at, []message{
			{fmt.Sprintf("m-%d-1", i), fmt.Sprintf("What happened on day %d of the hike?", i), "human", at},
			{fmt.Sprintf("m-%d-2", i), fmt.Sprintf("You crossed pass number %d.", i), "assistant", at},
		}})
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// importFile uploads a file and returns the import's id.
func (u user) importFile(t *testing.T, content string) string {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, content); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	started, err := u.ImportFile(t.Context(), nil, form.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	return started.Body.ImportID
}
