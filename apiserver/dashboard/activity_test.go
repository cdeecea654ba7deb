package dashboard

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestActivities(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	user := string(tenant.ActorUser)
	record := func(before time.Duration, verb audit.Verb, actor, via, app string, objects int) audit.Record {
		return audit.Record{At: at.Add(-before), Verb: verb, Actor: actor, Via: via, App: app, Objects: make([]string, objects)}
	}
	laptop := record(7*time.Hour, audit.MemoryCreate, user, tenant.ViaToken, "", 1)
	laptop.Fingerprint = "0123456789ab"
	got := activities([]audit.Record{
		record(0, audit.ConversationStore, user, tenant.ViaApp, "c1", 100),
		record(time.Minute, audit.ConversationStore, user, tenant.ViaApp, "c1", 20),
		record(2*time.Minute, audit.ConversationStore, user, tenant.ViaApp, "c2", 1),
		record(3*time.Minute, audit.MemoryCreate, user, tenant.ViaSession, "", 1),
		record(2*time.Hour, audit.MemoryCreate, user, tenant.ViaSession, "", 1),
		record(3*time.Hour, audit.MemoryDelete, user, tenant.ViaToken, "", 2),
		record(4*time.Hour, audit.UserCreate, string(tenant.ActorOperator), "", "", 0),
		record(5*time.Hour, audit.ImportFinish, string(tenant.ActorSystem), "import", "", 1),
		record(6*time.Hour, "memory.fold", user, tenant.ViaSession, "", 1),
		laptop,
	}, []connectedApp{{ConnectedApp: oauth.ConnectedApp{Client: "c1", Name: "Claude"}}}, map[string]string{"0123456789ab": "Laptop"})
	want := []string{
		"Claude: Stored 120 conversations", "A disconnected app: Stored 1 conversation", "You: Added 1 memory", "You: Added 1 memory",
		"Your token: Deleted 2 memories", "Your administrator: Created this account", "Mnemo: Finished an import", "You: Changed memory (fold)",
		"Token Laptop: Added 1 memory",
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %v", len(got), len(want), got)
	}
	for i, a := range got {
		who := inEnglish.say(a.Who)
		if a.App != nil {
			who = a.App.Name
		}
		if text := who + ": " + inEnglish.say(a.What); text != want[i] {
			t.Errorf("entry %d is %q, want %q", i, text, want[i])
		}
	}
}

// Every verb that a record of a user can have has a phrase.
func TestVerbsHavePhrases(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../internal/audit/record.go")
	if err != nil {
		t.Fatal(err)
	}
	verbs := regexp.MustCompile(`Verb\s+= "([a-z]+\.[a-z]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(verbs) < 30 {
		t.Fatalf("%d verbs in the source", len(verbs))
	}
	for _, found := range verbs {
		verb := audit.Verb(found[1])
		kind, _, _ := strings.Cut(string(verb), ".")
		_, ok := phrases[verb]
		if ofUser := !slices.Contains([]string{"tenant", "application", "index", "audit", "erasure", "erasures", "webhook"}, kind); ok != ofUser {
			t.Errorf("%s: has a phrase %v, want %v", verb, ok, ofUser)
		}
	}
}
