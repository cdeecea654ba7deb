package apiserver

import (
	"strings"
	"testing"
)

// storingCase is an accepted request that stores or removes data of the user who sends it. The
// refused requests of the route are in isolationCases: stored data would change the answers that
// are compared there.
type storingCase struct {
	route string
	isolationRequest
	silent bool // the export stays the same until a job runs, if there is one
}

var storingCases = []storingCase{
	{"POST /mem0/v3/memories/add", isolationRequest{body: `{"messages":[{"role":"user","content":"$q is for $t"}],"agent_id":"$x","infer":false}`}, false},
	{"POST /mem0/v1/memories", isolationRequest{body: `{"messages":"$q and $n","agent_id":"$x","infer":false}`}, false},
	{"POST /mem0/v3/memories/add", isolationRequest{body: `{"messages":"$q with inference","agent_id":"$x"}`}, true},
	{"POST /sample", isolationRequest{body: "back=/chats"}, false},
	{"POST /sample/remove", isolationRequest{body: "back=/chats"}, false},
}

// isolatesWrites sends accepted requests that name the owner's agent and contain the owner's
// words. They store data of the stranger, and the owner's stays the same.
func (x *isolationServer) isolatesWrites(t *testing.T) {
	t.Helper()
	owner := x.participant(t, "isolw", "alice", true)
	x.warm(t, owner)
	x.accepted(t, owner, owner, storingCase{"POST /sample", isolationRequest{body: "back=/chats"}, false})
	before := x.everything(t, owner)
	for kind, stranger := range map[string]*participant{
		"another user":   x.participant(t, "isolw", "bob", false),
		"another tenant": x.participant(t, "isolv", "alice", false),
		"an application": x.acting(t, "isolw", "alice"),
	} {
		for _, c := range storingCases {
			if stranger.acting != "" && !strings.Contains(c.route, pathMem0) {
				continue // applications have no dashboard
			}
			was := x.exported(t, stranger)
			x.accepted(t, stranger, owner, c)
			if !c.silent && x.exported(t, stranger) == was {
				t.Errorf("%s: %s %s: nothing of the stranger changed", kind, c.route, c.body)
			}
		}
		if after := x.everything(t, owner); after != before {
			t.Errorf("%s: the owner's data changed:\n%s\nbefore:\n%s", kind, after, before)
		}
	}
}

// accepted sends a request, which must be accepted. The answer contains nothing of the owner that
// the request does not name.
func (x *isolationServer) accepted(t *testing.T, who, owner *participant, c storingCase) {
	t.Helper()
	got := x.send(t, who, c.route, c.isolationRequest, owner.secrets)
	if got.status != 200 && got.status != 303 {
		t.Errorf("%s %s: %d %.300s, want an accepted request", c.route, c.body, got.status, got.body)
	}
	for name, secret := range owner.secrets {
		if name != "$b" && name != "$s" && secret != who.acting && !strings.Contains(c.body, name) && strings.Contains(got.raw, secret) {
			t.Errorf("%s %s: the answer contains %s (%s): %.500s", c.route, c.body, secret, name, got.body)
		}
	}
}
