package apiserver

import (
	"net/http"
	"strings"
	"testing"
)

// isolatesSharedIDs sends every request of the API of mem0 that names a memory, with the key of an application and without a user, if two users have a
// memory of this id: one has restored the export of the other. Each is refused and changes nothing.
func (x *isolationServer) isolatesSharedIDs(t *testing.T) {
	t.Helper()
	victim, attacker := x.acting(t, "isols", "victim"), x.acting(t, "isols", "attacker")
	x.fillParticipant(t, victim)
	export := x.call(t, victim.token, "GET", "/api/export", "", victim.headers()...).body
	x.restore(t, attacker.token, export, attacker.headers()...)
	before := [2]string{x.exported(t, victim), x.exported(t, attacker)}
	nobody := &participant{token: victim.token}
	sent := 0
	for route, cases := range isolationCases {
		for _, r := range cases {
			if !strings.Contains(route, pathMem0) || !strings.Contains(r.path+r.body, "$m") {
				continue
			}
			sent++
			if got := x.send(t, nobody, route, r, victim.secrets); got.status != http.StatusConflict || strings.Contains(got.body, victim.secrets["$q"]) {
				t.Errorf("%s %s %s: %d %.300s, want 409", route, r.path, r.body, got.status, got.body)
			}
		}
	}
	if sent == 0 {
		t.Error("no case names a memory")
	}
	if after := [2]string{x.exported(t, victim), x.exported(t, attacker)}; after != before {
		t.Errorf("the data changed:\n%s\nbefore:\n%s", after, before)
	}
	const edit = `{"text":"drinks tea"}`
	path := pathMem0 + "/v1/memories/" + victim.secrets["$m"]
	if got := x.call(t, victim.token, "PUT", path, edit, victim.headers()...); got.status != http.StatusOK {
		t.Errorf("the request that names the user: %d %s", got.status, got.body)
	}
	if after := x.exported(t, attacker); after != before[1] {
		t.Errorf("an edit of one user changed the other's data:\n%s\nbefore:\n%s", after, before[1])
	}
}
