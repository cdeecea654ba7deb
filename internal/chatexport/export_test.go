package chatexport_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

func TestPlatformOverrulesDetection(t *testing.T) {
	t.Parallel()
	both := archive(t,
		deflated("a.json", fixture(t, "chatgpt/simple.json", zip.Store)),
		deflated("b.json", fixture(t, "claude/attachments.json", zip.Store)))
	cases := map[string]struct {
		reason   string
		data     []byte
		platform string
		want     string
		total    int
	}{
		"detected": {"both are read, the name is that of most", both, "", chatexport.ChatGPT, 3},
		"chatgpt":  {"only what was asked for", both, chatexport.ChatGPT, chatexport.ChatGPT, 2},
		"claude":   {"only what was asked for", both, chatexport.Claude, chatexport.Claude, 1},
		"mistaken": {"each conversation says what is wrong", []byte(simple), chatexport.Claude, chatexport.Claude, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, tc.data, chatexport.Options{Platform: tc.platform})
			got := all(t, e)
			if e.Platform != tc.want {
				t.Errorf("%s: e.Platform = %v, want %v", tc.reason, e.Platform, tc.want)
			}
			if len(got) != tc.total {
				t.Errorf("%s: len(got) = %d, want %d", tc.reason, len(got), tc.total)
			}
			for _, o := range got {
				if (o.err != nil) != (name == "mistaken") {
					t.Errorf("%s: conversation %d: %v", tc.reason, o.Ordinal, o.err)
				}
			}
		})
	}
}

// A file that gives other bytes the second time is noticed.
func TestAChangedFileIsNoticed(t *testing.T) {
	t.Parallel()
	data := fixture(t, "chatgpt/simple.json", zip.Store)
	e := open(t, data, chatexport.Options{})
	clear(data[len(data)/2:])
	var last error
	for _, err := range e.Conversations(nil) {
		if _, one := errors.AsType[*chatexport.ConversationError](err); err != nil && !one {
			last = err
		}
	}
	if last == nil {
		t.Error("nothing was noticed")
	}
}

// An interrupted import resumes after the conversations in its ledger.
func TestSkippingResumes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"chatgpt/one-bad-apple.json", "chatgpt/portal", "claude/bundle", "chatgpt/sharded"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := fixture(t, name, zip.Deflate)
			want := all(t, open(t, data, chatexport.Options{}))
			for cut := range want {
				e := open(t, data, chatexport.Options{})
				done := map[int]bool{}
				for c, err := range e.Conversations(nil) {
					if c.Ordinal == cut {
						break
					}
					_ = err
					done[c.Ordinal] = true
				}
				for c, err := range e.Conversations(func(i int) bool { return done[i] }) {
					if done[c.Ordinal] {
						t.Fatalf("conversation %d came twice", c.Ordinal)
					}
					done[c.Ordinal] = true
					got, err := marshal(c, err)
					before, err2 := marshal(want[c.Ordinal].Conversation, orNil(want[c.Ordinal].err))
					if got != before || err != nil || err2 != nil {
						t.Errorf("conversation %d is another one after a restart:\n%s\n%s", c.Ordinal, got, before)
					}
				}
				if len(done) != len(want) {
					t.Errorf("killed at %d: %d conversations, want %d", cut, len(done), len(want))
				}
			}
		})
	}
}

func orNil(err *chatexport.ConversationError) error {
	if err == nil {
		return nil
	}
	return err
}

func marshal(c chatexport.Conversation, problem error) (string, error) {
	b, err := json.Marshal(c)
	return fmt.Sprintf("%s %v", b, problem), err
}
