package placement_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// TestIndexOnDemand lets a user of one of two tenants outgrow exact scoring, one message at a time, while
// two servers answer searches. No search misses its message. Then only this tenant needs Milvus.
func TestIndexOnDemand(t *testing.T) {
	t.Parallel()
	gate := testkit.NewGate(t, testkit.Milvus(t).Addr)
	gate.Open(t)
	h := newHost(t, installation.Options{OnDemand: true, Through: gate.Addr})
	small := h.add(t, "small", v1alpha1.Shared, 100)
	grower := h.add(t, "grower", v1alpha1.Partition, placement.ExactUnits-20)
	for _, u := range []*user{small, grower} {
		u.wantCondition(t, v1alpha1.ReasonUnindexed)
		u.mustFind(t)
	}
	h.wantLocations(t)

	second := grower.at(h.Serve(t))
	whileInUse(t, []*user{grower, second}, func() { grower.wantIndexed(t, true) })
	if grower.messages <= placement.ExactUnits {
		t.Errorf("the tenant is in an index with %d messages, want more than %d", grower.messages, placement.ExactUnits)
	}
	grower.settle(t)
	grower.isIndexed(t)
	grower.mustFind(t)
	grower.wantCondition(t, v1alpha1.ReasonAssigned)
	small.wantCondition(t, v1alpha1.ReasonUnindexed)
	h.wantLocations(t, grower.location(t))

	gate.Close()
	if right, degraded, err := small.find(1); err != nil || !right || degraded {
		t.Errorf("the small tenant without Milvus: found %t, degraded %t, %v, want all of PostgreSQL", right, degraded, err)
	}
	if _, degraded, err := grower.find(1); err != nil || !degraded {
		t.Errorf("the indexed tenant without Milvus: degraded %t, %v, want a degraded response", degraded, err)
	}
}

// TestOutgrownWhileTheOperatorIsDown imports an export with more messages than are scored exactly, and
// kills the server. The next operator and server migrate the tenant. Until then, searches are exact.
func TestOutgrownWhileTheOperatorIsDown(t *testing.T) {
	t.Parallel()
	h := &host{Installation: installation.New(t, installation.Options{OnDemand: true})}
	operator := h.Operate(t)
	h.server = h.Serve(t)
	u := h.add(t, "importer", v1alpha1.Partition, 0)
	u.provider = "claude"
	operator.Kill()
	u.imports(t, placement.ExactUnits+500)
	state, err := h.DB.GetPlacement(t.Context(), tenant.ID(u.id(t)))
	if err != nil || !state.Outgrown || state.Current.Indexed() || state.Migrating() {
		t.Fatalf("the placement is %+v, %v, want a tenant that has outgrown exact scoring and is in no index", state, err)
	}
	u.mustFind(t)
	h.killServer(t)

	h.Operate(t)
	h.server = h.Serve(t)
	u.wantIndexed(t, true)
	u.settle(t)
	u.isIndexed(t)
	u.mustFind(t)
	h.wantLocations(t, u.location(t))
}

// wantCondition waits until the Tenant is Ready and IndexReady is True with the reason.
func (u *user) wantCondition(t *testing.T, reason string) {
	t.Helper()
	installation.Eventually(t, installation.Patience, func() string {
		tn := u.host.Tenant(u.tenant)
		if err := u.host.Get(t.Context(), client.ObjectKeyFromObject(tn), tn); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(tn.Status.Conditions, v1alpha1.IndexReady)
		if c == nil || c.Reason != reason || !meta.IsStatusConditionTrue(tn.Status.Conditions, v1alpha1.Ready) {
			return fmt.Sprintf("the conditions of %s are %+v", u.tenant, tn.Status.Conditions)
		}
		return ""
	})
}

// wantLocations checks which partitions and keys the installation has in Milvus.
func (h *host) wantLocations(t *testing.T, want ...placement.Location) {
	t.Helper()
	got, err := milvustest.Locations(t.Context(), milvustest.Open(t), h.Prefix())
	if err != nil || len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
		t.Errorf("Milvus has %+v, %v, want %+v", got, err, want)
	}
}

// imports uploads an export of Claude with conversations of 250 messages, and waits until all are
// indexed.
func (u *user) imports(t *testing.T, messages int) {
	t.Helper()
	const each, at = 250, "2026-05-01T00:00:00+00:00"
	var conversations []map[string]any
	for from := 0; from < messages; from += each {
		var list []map[string]any
		for n := from; n < min(from+each, messages); n++ {
			list = append(list, map[string]any{"uuid": fmt.Sprint("m", n), "sender": "human", "created_at": at, "text": u.text(n),
				"content": []map[string]any{{"type": "text", "text": u.text(n)}}})
		}
		conversations = append(conversations, map[string]any{"uuid": fmt.Sprint("c", from), "name": "Yard", "created_at": at, "updated_at": at,
			"account": map[string]any{"uuid": "a"}, "chat_messages": list})
	}
	export, err := json.Marshal(conversations)
	if err != nil {
		t.Fatal(err)
	}
	u.upload(t, export)
	installation.Eventually(t, installation.Patience, func() string {
		var n int
		err := u.host.Owner.QueryRow(t.Context(), "select count(*) from units where tenant_id = $1 and active", u.id(t)).Scan(&n)
		if err != nil || n < messages {
			return fmt.Sprintf("%d of %d messages are imported, %v", n, messages, err)
		}
		return ""
	})
	u.messages = messages
	u.settle(t)
}

func (u *user) upload(t *testing.T, export []byte) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(export); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.host.server.URL+"/api/chat-history/import", &body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+u.token)
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("upload: %s", response.Status)
	}
}
