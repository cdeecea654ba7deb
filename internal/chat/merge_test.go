package chat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func message(id, text string) Message {
	return Message{ExternalID: id, Sender: Human, Text: text, Tokens: len(text), CreatedAt: noon}
}

func TestPlanMergesMessages(t *testing.T) {
	t.Parallel()
	stored := []Message{message("a", "one"), message("b", "two"), message("c", "three")}
	for name, tc := range map[string]struct {
		reason   string
		incoming []Message
		want     []string
		added    []int
		replaced []int
	}{
		"empty":     {"messages that are not sent again remain", nil, []string{"one", "two", "three"}, nil, nil},
		"unchanged": {"the same content changes nothing", []Message{message("b", "two")}, []string{"one", "two", "three"}, nil, nil},
		"replaced":  {"a known id with other content replaces", []Message{message("b", "2")}, []string{"one", "2", "three"}, nil, []int{1}},
		"added":     {"unknown ids are appended in order", []Message{message("e", "5"), message("d", "4")}, []string{"one", "two", "three", "5", "4"}, []int{3, 4}, nil},
		"both": {"replacing and adding combine", []Message{message("d", "4"), message("a", "1")},
			[]string{"1", "two", "three", "4"}, []int{3}, []int{0}},
		"duplicates": {"the last message with an id wins", []Message{message("d", "4"), message("d", "4b")},
			[]string{"one", "two", "three", "4b"}, []int{3}, nil},
		"changed and reverted": {"only the last content counts", []Message{message("a", "1"), message("a", "one")}, []string{"one", "two", "three"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Plan(Conversation{ID: "id"}, stored, Upsert{Messages: tc.incoming}, "new")
			var got []string
			for _, m := range c.Messages {
				got = append(got, m.Text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: texts (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.added, c.Added); diff != "" {
				t.Errorf("%s: added (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.replaced, c.Replaced); diff != "" {
				t.Errorf("%s: replaced (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanComparesSenderTextAndTime(t *testing.T) {
	t.Parallel()
	stored := []Message{message("a", "one")}
	for name, tc := range map[string]struct {
		change func(*Message)
		want   bool
	}{
		"sender":                        {func(m *Message) { m.Sender = Assistant }, true},
		"text":                          {func(m *Message) { m.Text = "1" }, true},
		"time":                          {func(m *Message) { m.CreatedAt = noon.Add(timePrecision) }, true},
		"time beyond storage precision": {func(m *Message) { m.CreatedAt = noon.Add(timePrecision - 1) }, false},
		"time zone":                     {func(m *Message) { m.CreatedAt = noon.In(time.FixedZone("", 3600)) }, false},
		"token count":                   {func(m *Message) { m.Tokens = 99 }, false},
	} {
		m := stored[0]
		tc.change(&m)
		c := Plan(Conversation{ID: "id"}, stored, Upsert{Messages: []Message{m}}, "new")
		if got := len(c.Replaced) > 0; got != tc.want {
			t.Errorf("%s: replaced = %t, want %t", name, got, tc.want)
		}
	}
}

func TestPlanOfNewConversation(t *testing.T) {
	t.Parallel()
	u := Upsert{ExternalID: "x", Platform: "claude", PlatformName: "Claude", Title: "Trains", CreatedAt: noon,
		Messages: []Message{message("a", "one"), {ExternalID: "b", Text: "three", Tokens: 2, CreatedAt: noon.Add(time.Hour)}}}
	c := Plan(Conversation{}, nil, u, "new")
	want := Conversation{ID: "new", ExternalID: "x", Platform: "claude", PlatformName: "Claude", Title: "Trains", Status: Blocked,
		MessageCount: 2, TokenCount: 5, Bytes: 8, CreatedAt: noon, UpdatedAt: noon.Add(time.Hour)}
	if diff := cmp.Diff(want, c.After); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	if !c.Created() || !c.Changed() {
		t.Errorf("Created = %t, Changed = %t, want both", c.Created(), c.Changed())
	}
	if c.Storage() != 8 {
		t.Errorf("Storage = %d, want 8", c.Storage())
	}
}

func TestPlanAppliesMetadata(t *testing.T) {
	t.Parallel()
	before := Conversation{ID: "id", ExternalID: "x", Platform: "claude", PlatformName: "Claude", Title: "Trains", Status: Excluded,
		Pinned: true, CreatedAt: noon, UpdatedAt: noon}
	stored := Upsert{ExternalID: "x", Platform: "claude", PlatformName: "Claude", Title: "Trains", CreatedAt: noon, UpdatedAt: noon}
	for name, tc := range map[string]struct {
		reason string
		change func(*Upsert)
		want   func(*Conversation)
	}{
		"same":             {"nothing changes", func(*Upsert) {}, func(*Conversation) {}},
		"title":            {"a new title", func(u *Upsert) { u.Title = "Ships" }, func(c *Conversation) { c.Title = "Ships" }},
		"no title":         {"an empty title keeps the stored one", func(u *Upsert) { u.Title = "" }, func(*Conversation) {}},
		"no display name":  {"an empty display name keeps the stored one", func(u *Upsert) { u.PlatformName = "" }, func(*Conversation) {}},
		"no creation time": {"a missing time keeps the stored one", func(u *Upsert) { u.CreatedAt = time.Time{} }, func(*Conversation) {}},
		"updated": {"an explicit update time is stored", func(u *Upsert) { u.UpdatedAt = noon.Add(time.Hour) },
			func(c *Conversation) { c.UpdatedAt = noon.Add(time.Hour) }},
		"no update": {"without messages the update time is the creation time", func(u *Upsert) { u.UpdatedAt = time.Time{} }, func(*Conversation) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, want := stored, before
			tc.change(&u)
			tc.want(&want)
			c := Plan(before, nil, u, "new")
			if diff := cmp.Diff(want, c.After); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := c.Changed(); got != (want != before) {
				t.Errorf("%s: Changed = %t", tc.reason, got)
			}
		})
	}
}

func TestWithDefaultTimes(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	in := Upsert{Messages: []Message{{ExternalID: "a"}, {ExternalID: "b", CreatedAt: later}}}
	got := in.WithDefaultTimes(noon)
	want := Upsert{CreatedAt: noon, Messages: []Message{{ExternalID: "a", CreatedAt: noon}, {ExternalID: "b", CreatedAt: later}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !in.Messages[0].CreatedAt.IsZero() {
		t.Error("the input was modified")
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	u := Upsert{ExternalID: "x", Platform: "custom", Title: "Trains", CreatedAt: noon, Messages: []Message{message("a", "one")}}
	want := Conversation{ID: "new", ExternalID: "x", Platform: "custom", Title: "Trains", Status: Blocked, MessageCount: 1, CreatedAt: noon, UpdatedAt: noon}
	if diff := cmp.Diff(want, Rejected(Conversation{}, u, "new")); diff != "" {
		t.Errorf("unknown conversation (-want +got):\n%s", diff)
	}
	stored := Conversation{ID: "id", Title: "Ships"}
	if diff := cmp.Diff(stored, Rejected(stored, u, "new")); diff != "" {
		t.Errorf("stored conversation (-want +got):\n%s", diff)
	}
}

// genMessages generates messages whose ids and texts often repeat.
func genMessages(t *rapid.T, label string) []Message {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Message {
		return message(fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "id")), rapid.SampledFrom([]string{"", "a", "bb"}).Draw(t, "text"))
	}), 0, 8).Draw(t, label)
}

// Whatever is sent in whatever order, a conversation contains the last content of
// every message that was ever sent, and sending the same again changes nothing.
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var conversation Conversation
		var messages []Message
		want := map[string]string{}
		for range rapid.IntRange(1, 5).Draw(t, "upserts") {
			u := Upsert{CreatedAt: noon, Messages: genMessages(t, "messages")}
			for _, m := range u.Messages {
				want[m.ExternalID] = m.Text
			}
			c := Plan(conversation, messages, u, "id")
			checkChange(t, c, messages)
			if again := Plan(c.After, c.Messages, u, "other"); again.Changed() {
				t.Fatalf("the same upsert again changes %v and %v, after %+v", again.Added, again.Replaced, c.After)
			}
			conversation, messages = c.After, c.Messages
		}
		got := map[string]string{}
		for _, m := range messages {
			got[m.ExternalID] = m.Text
		}
		if !maps.Equal(want, got) {
			t.Fatalf("texts are %v, want %v", got, want)
		}
	})
}

// checkChange compares a change with the messages before and after.
func checkChange(t *rapid.T, c Change, before []Message) {
	bytes, tokens := int64(0), 0
	for i, m := range c.Messages {
		bytes, tokens = bytes+int64(len(m.Text)), tokens+m.Tokens
		if m.Index != i && (i >= len(before) || slices.Contains(c.Replaced, i)) {
			t.Fatalf("message %d has index %d", i, m.Index)
		}
		if added := i >= len(before); added != slices.Contains(c.Added, i) {
			t.Fatalf("message %d: added = %t", i, !added)
		}
		if i < len(before) && (m.Text != before[i].Text) != slices.Contains(c.Replaced, i) {
			t.Fatalf("message %d: text %q, was %q, replaced %v", i, m.Text, before[i].Text, c.Replaced)
		}
	}
	if c.After.Bytes != bytes {
		t.Fatalf("c.After.Bytes = %v, want %v", c.After.Bytes, bytes)
	}
	if c.After.TokenCount != tokens {
		t.Fatalf("c.After.TokenCount = %v, want %v", c.After.TokenCount, tokens)
	}
	if c.After.MessageCount != len(c.Messages) {
		t.Fatalf("c.After.MessageCount = %v, want %v", c.After.MessageCount, len(c.Messages))
	}
	for _, i := range slices.Concat(c.Added, c.Replaced) {
		if !slices.Contains(c.Reindexed(), i) {
			t.Fatalf("units of message %d are not replaced", i)
		}
	}
}

// The units of the first message contain the title.
func TestTitleReindexesFirstMessage(t *testing.T) {
	t.Parallel()
	stored := []Message{{ExternalID: "a", Sender: Human, Text: "one"}, {ExternalID: "b", Index: 1, Sender: Assistant, Text: "two"}}
	before := Conversation{ID: "1", ExternalID: "c", Title: "Old", MessageCount: 2}
	for title, want := range map[string][]int{"Old": nil, "New": {0}, "": nil} {
		c := Plan(before, stored, Upsert{ExternalID: "c", Title: title, Messages: stored}, "2")
		if got := c.Reindexed(); !slices.Equal(got, want) {
			t.Errorf("title %q: messages %v are reindexed, want %v", title, got, want)
		}
	}
	units := Change{After: Conversation{Title: "New"}, Messages: stored}.Units()([]int{0})
	if len(units) != 1 || !strings.HasPrefix(units[0].Lexical, "New\n") {
		t.Errorf("units = %v, want one that begins with the title", units)
	}
}

func TestChangeTooLarge(t *testing.T) {
	t.Parallel()
	text := func(n int) Message { return Message{ExternalID: "m0", Text: strings.Repeat("x", n)} }
	many := make([]Message, MaxMessages+1)
	for i := range many {
		many[i].ExternalID = fmt.Sprint("m", i)
	}
	before := Conversation{ID: "c"}
	tests := map[string]struct {
		stored, sent []Message
		want         bool
	}{
		"Limit":        {nil, []Message{text(MaxConversation - 2)}, false},
		"Id":           {nil, []Message{text(MaxConversation - 1)}, true},
		"Messages":     {many[:MaxMessages-1], many[:MaxMessages], false},
		"ManyMessages": {many[:MaxMessages], many, true},
		"Unchanged":    {[]Message{text(MaxConversation)}, []Message{text(MaxConversation)}, false},
		"Smaller":      {[]Message{text(2 * MaxConversation)}, []Message{text(MaxConversation)}, false},
		"Larger":       {[]Message{text(MaxConversation)}, []Message{text(MaxConversation + 1)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := before
			for _, m := range tc.stored {
				stored.Bytes += int64(len(m.Text))
			}
			if got := Plan(stored, tc.stored, Upsert{ExternalID: "a", Messages: tc.sent}, "").TooLarge(); got != tc.want {
				t.Errorf("TooLarge = %t, want %t", got, tc.want)
			}
		})
	}
}
