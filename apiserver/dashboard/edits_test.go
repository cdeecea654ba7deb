package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
)

// newBucket creates a bucket through the API and returns its id.
func (s *site) newBucket(t *testing.T, u user, name string) string {
	t.Helper()
	status, body := s.api(t, 0, u.token, "POST", "/api/buckets", `{"name":`+quote(name)+`}`)
	if status != http.StatusOK {
		t.Fatalf("create bucket: %d %s", status, body)
	}
	return between(body, `"id":"`, `"`)
}

// updateBucket changes a bucket through the API.
func (s *site) updateBucket(t *testing.T, u user, id, change string) {
	t.Helper()
	if status, body := s.api(t, 0, u.token, "PATCH", "/api/buckets/"+id, change); status != http.StatusOK {
		t.Fatalf("update bucket: %d %s", status, body)
	}
}

func (s *site) deleteBucket(t *testing.T, u user, id string) {
	t.Helper()
	if status, body := s.api(t, 0, u.token, "DELETE", "/api/buckets/"+id, ""); status != http.StatusOK {
		t.Fatalf("delete bucket: %d %s", status, body)
	}
}

// remember stores a memory through the API and returns its id.
func (s *site) remember(t *testing.T, u user, text string) string {
	t.Helper()
	status, body := s.api(t, 0, u.token, "POST", "/api/memory", `{"text":`+quote(text)+`}`)
	if status != http.StatusOK {
		t.Fatalf("store memory: %d %s", status, body)
	}
	return between(body, `"memoryId":"`, `"`)
}

// update changes a memory through the API, as an assistant does.
func (s *site) update(t *testing.T, u user, change string) {
	t.Helper()
	if status, body := s.api(t, 0, u.token, "POST", "/api/v2/memory/update", change); status != http.StatusOK {
		t.Fatalf("update memory: %d %s", status, body)
	}
}

// only returns the id of the only memory of a user.
func (s *site) only(t *testing.T, u user) string {
	t.Helper()
	if n := s.stored(t, u); n != 1 {
		t.Fatalf("%d memories are stored, want one", n)
	}
	return between(s.memoriesOf(t, u), `"id":"`, `"`)
}

// has fails unless a memory has a text, a version and a bucket.
func (s *site) has(t *testing.T, u user, id, text string, version int, bucket string) {
	t.Helper()
	type content struct {
		Text    string
		Version int
		Bucket  string
	}
	found, err := s.db.Memories().ByID(t.Context(), u.Scope, []string{id}, time.Time{})
	if err != nil || len(found) != 1 {
		t.Fatalf("read memory: %v, %v", found, err)
	}
	got := content{found[0].Text, found[0].Version, found[0].BucketName}
	if diff := cmp.Diff(content{text, version, bucket}, got); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
}

// keepsOthersEdits: a form changes only the fields that its user changed. If somebody else changed one of them in the
// meantime, the user sees both texts first.
func keepsOthersEdits(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	travel := s.newBucket(t, alice, "Travel")
	id := s.remember(t, alice, "2025-05-09 The bins are emptied on Mondays.")
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 409")
	tab.signIn(alice)
	save := func() {
		t.Helper()
		tab.click("form.stack button.primary")
	}

	tab.open("/memories/" + id)
	tab.choose("select[name=bucket]", "Travel")
	s.update(t, alice, `{"memoryId":"`+id+`","text":"2025-05-09 The bins are emptied on Tuesdays."}`)
	save()
	tab.sees("Saved.")
	s.has(t, alice, id, "2025-05-09 The bins are emptied on Tuesdays.", 2, "Travel")

	tab.open("/memories/" + id)
	tab.fill("#text", "2025-05-09 The bins are emptied on Fridays.")
	s.update(t, alice, `{"memoryId":"`+id+`","bucketName":"General"}`)
	save()
	tab.sees("Saved.")
	s.has(t, alice, id, "2025-05-09 The bins are emptied on Fridays.", 3, "General")

	tab.open("/memories/" + id)
	tab.choose("select[name=bucket]", "Travel")
	tab.fill("#text", "2025-05-09 The bins are emptied on Sundays.")
	s.update(t, alice, `{"memoryId":"`+id+`","text":"2025-05-09 The bins are emptied twice a week."}`)
	save()
	tab.sees("The memory was edited in the meantime")
	tab.sees("The bins are emptied twice a week.")
	tab.until(`document.querySelector("#text").value === "2025-05-09 The bins are emptied on Sundays."`, "keep the draft")
	tab.looks("memory-conflict")
	s.has(t, alice, id, "2025-05-09 The bins are emptied twice a week.", 4, "General")
	s.update(t, alice, `{"memoryId":"`+id+`","text":"2025-05-09 The bins are emptied daily."}`)
	tab.inLanguage(dashboard.Pseudo)
	save()
	tab.until(`document.querySelector("main").innerText.includes("The bins are emptied daily.")`, "see the current text")
	tab.marked("memory-conflict")
	tab.inLanguage("en")
	save()
	tab.sees("Saved.")
	s.has(t, alice, id, "2025-05-09 The bins are emptied on Sundays.", 6, "Travel")

	for _, text := range []string{"2025-05-09 One line.\r\nAnother line.", "\n  2025-05-09 Spaces around. \n", "2025-05-09 An old\rline break."} {
		id := s.remember(t, alice, text)
		tab.open("/memories/" + id)
		tab.choose("select[name=bucket]", "Travel")
		save()
		tab.sees("Saved.")
		s.has(t, alice, id, text, 1, "Travel")
	}
	s.keepsOthersBuckets(t, alice, tab, travel)
}

// keepsOthersBuckets does the same with the form of a bucket.
func (s *site) keepsOthersBuckets(t *testing.T, alice user, tab *tab, id string) {
	t.Helper()
	has := func(name, description string) {
		t.Helper()
		_, body := s.api(t, 0, alice.token, "GET", "/api/buckets", "")
		got := [2]string{between(body, `"id":"`+id+`","name":"`, `"`), between(body, `"name":"`+name+`","description":"`, `"`)}
		if diff := cmp.Diff([2]string{name, description}, got); diff != "" {
			t.Errorf("bucket (-want +got):\n%s\n%s", diff, body)
		}
	}
	tab.open("/buckets/" + id)
	tab.fill("input[name=name]", "Journeys")
	s.updateBucket(t, alice, id, `{"description":"Trains\r\nand planes"}`)
	tab.click("form.stack button.primary")
	tab.sees("Saved.")
	has("Journeys", `Trains\r\nand planes`)

	tab.open("/buckets/" + id)
	tab.fill("textarea", "Ships")
	s.updateBucket(t, alice, id, `{"name":"Trips"}`)
	tab.click("form.stack button.primary")
	tab.sees("Saved.")
	has("Trips", "Ships")

	tab.open("/buckets/" + id)
	tab.fill("textarea", "Ferries")
	s.updateBucket(t, alice, id, `{"name":"Travels","description":"Boats"}`)
	tab.click("form.stack button.primary")
	tab.sees("The bucket was edited in the meantime")
	tab.sees("Boats")
	tab.until(`document.querySelector("input[name=name]").value === "Travels" && document.querySelector("textarea").value === "Ferries"`, "keep the draft")
	tab.looks("bucket-conflict")
	has("Travels", "Boats")
	s.updateBucket(t, alice, id, `{"description":"Canoes"}`)
	tab.inLanguage(dashboard.Pseudo)
	tab.click("form.stack button.primary")
	tab.until(`document.querySelector("main").innerText.includes("Canoes")`, "see the current description")
	tab.marked("bucket-conflict")
	tab.inLanguage("en")
	tab.click("form.stack button.primary")
	tab.sees("Saved.")
	has("Travels", "Ferries")
}
