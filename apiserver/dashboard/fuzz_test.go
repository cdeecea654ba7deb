package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLocalPath: a browser stays on this site, however it reads the path.
func FuzzLocalPath(f *testing.F) {
	for _, path := range []string{"/memories?q=a", "//evil.test", "/\\evil.test", "/\t/evil.test", "https://evil.test", "/%2f/evil.test", "/a/..//evil.test", " /a", "/a\r\nb", "/?next=//x", "\\/x"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := localPath(path, "/memories")
		// Browsers remove tabs and line breaks and read \ as / (WHATWG URL).
		browser := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(got), `\`, "/")
		u, err := url.Parse("https://mnemo.test/sign-in")
		if err != nil {
			t.Fatal(err)
		}
		to, err := u.Parse(browser)
		if err != nil || to.Scheme != "https" || to.Host != "mnemo.test" || strings.HasPrefix(browser, "//") || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("%q leads to %q: %v", path, to, err)
		}
	})
}

// FuzzText: what pages show of a text is valid and complete.
func FuzzText(f *testing.F) {
	for _, text := range []string{"2025-05-09 Moved to Leeds", "2025-02-30 x", "2025-05-09", "2025-05-09 – a"} {
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		if !utf8.ValidString(text) || n < 0 {
			return
		}
		d := splitDate(text)
		if !strings.HasSuffix(text, d.Text) || !d.Date.IsZero() && d.Text == "" {
			t.Fatalf("%q has the date %s and the text %q", text, d.Date, d.Text)
		}
		if short := excerpt(n, text); !utf8.ValidString(short) || len(short) > max(n+len(" …"), 0) && len(text) > n {
			t.Fatalf("%q, %d bytes of it: %q", text, n, short)
		}
	})
}
