package dashboard_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// showsTheReference: the API reference shows the operations of this server, and
// calls one with a token. A violation of the content security policy fails the test.
func showsTheReference(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.open("/docs")
	tab.sees("/api/buckets")
	tab.sees("Memories and chat history of users")
	var picture []byte
	tab.do(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(b.shot, "reference.png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}

	tab.click(".btn.authorize")
	tab.fill(".auth-container input", alice.token)
	tab.click(".auth-btn-wrapper .authorize")
	tab.click(".btn-done")
	tab.click("#operations-Buckets-listBuckets .opblock-summary-control")
	tab.click("#operations-Buckets-listBuckets .try-out__btn")
	tab.click("#operations-Buckets-listBuckets .execute")
	tab.until("document.querySelector('#operations-Buckets-listBuckets .live-responses-table')?.innerText.includes('General')", "see the response")

	var loaded []string
	tab.eval(`performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:"))`, &loaded)
	if len(loaded) > 0 {
		t.Errorf("the page loads files of other servers: %v", loaded)
	}
}
