package dashboard

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	say := inEnglish.say
	for got, want := range map[string]string{
		say(msg("%d memories", 1)): "1 memory", say(msg("%d memories", 1200)): "1,200 memories", say(msg("%d memories", 0)): "0 memories",
		inEnglish.number(-1234567): "-1,234,567", inEnglish.number(999): "999", inEnglish.number(int64(100)): "100",
		inEnglish.byteSize(1): "1 byte", inEnglish.byteSize(10 << 30): "10 GiB", inEnglish.byteSize(1536): "1.5 KiB",
		say(ago(3 * time.Second)): "just now", say(ago(-time.Second)): "just now", say(ago(61 * time.Second)): "1 minute ago", say(ago(50 * time.Hour)): "2 days ago",
		say(remaining(time.Second)): "a few seconds left", say(remaining(40 * time.Second)): "less than a minute left", say(remaining(56 * time.Second)): "about 1 minute left",
		say(remaining(150 * time.Second)): "about 3 minutes left", say(remaining(2 * time.Hour)): "about 2 hours left",
		sentence("érable"): "Érable.", sentence("Done."): "Done.", sentence(""): ".",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTitleOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Which train?": "Which train?", "\n## **Plan**  for `May`\nmore": "Plan for May", "---\n> quoted": "quoted", " ": "", "***": "",
		strings.Repeat("ab ", 40): strings.TrimSpace(strings.Repeat("ab ", 27)) + " …",
	} {
		if got := titleOf(text); got != want {
			t.Errorf("titleOf(%q) = %q, want %q", text, got, want)
		}
	}
}

// Fragments contain the text around the matches, unchanged, and mark them.
func TestFragments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("nothing here ", 50) + "the train leaves " + strings.Repeat("later on ", 50)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(40, 900).Draw(t, "bytes")
		text, marked := "", ""
		for _, f := range fragments("trains", long, n) {
			text += f.Text
			if f.Match {
				marked += f.Text
			}
		}
		if marked != "train" || len(text) > n+len("… ")+len(" …") || !strings.Contains(long, strings.Trim(text, "… ")) {
			t.Fatalf("fragments of %d bytes: %q, marked %q", n, text, marked)
		}
	})
	if diff := cmp.Diff([]fragment{{Text: "No "}, {"trains", true}, {Text: "."}}, fragments("train", "No trains.", 100)); diff != "" {
		t.Errorf("fragments (-want +got):\n%s", diff)
	}
}

// A match near the beginning of a text, which is longer than half of the fragments, is shown
// from the beginning. Runs of Thai or Chinese are one match.
func TestFragmentsOfLongMatches(t *testing.T) {
	t.Parallel()
	rest := strings.Repeat(" and more", 50)
	for name, match := range map[string]string{
		"Thai":    strings.Repeat("ฉันแพ้ถั่วลิสงมาก", 4),
		"Chinese": strings.Repeat("我对花生过敏", 13),
		"Token":   strings.Repeat("x", 211),
	} {
		for _, before := range []string{"", "Note: ", strings.Repeat("a ", 52)} {
			got := fragments(match, before+match+rest, foundText)
			text, marked := "", ""
			for _, f := range got {
				text += f.Text
				if f.Match {
					marked += f.Text
				}
			}
			if marked != match || !strings.HasPrefix(text, before+match) {
				t.Errorf("%s after %q: fragments %v, want %q marked", name, before, got, match)
			}
		}
	}
}

// Fragments of any text are a valid part of it, of limited length.
func TestFragmentsOfAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.Custom(func(t *rapid.T) string {
			word := rapid.SampledFrom([]string{"a", "word ", "line\n", "ß€𝄞", "花生过敏", "แพ้ถั่ว", "고양이 "}).Draw(t, "word")
			return strings.Repeat(word, rapid.IntRange(0, 200).Draw(t, "times"))
		})
		whole := strings.Join(rapid.SliceOfN(texts, 0, 4).Draw(t, "texts"), "")
		query := rapid.OneOf(texts, rapid.Just(excerpt(210, whole)), rapid.Just(whole)).Draw(t, "query")
		n := rapid.IntRange(40, 900).Draw(t, "bytes")
		text := ""
		for _, f := range fragments(query, whole, n) {
			text += f.Text
		}
		if !utf8.ValidString(text) || len(text) > n+len("… ")+len(" …") || !strings.Contains(whole, strings.Trim(text, "… \n")) {
			t.Fatalf("fragments of %d bytes: %q", n, text)
		}
	})
}

func TestSplitDate(t *testing.T) {
	t.Parallel()
	may := time.Date(2025, 5, 9, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]datedText{
		"2025-05-09 Likes the window": {may, "Likes the window"},
		"2025-05-09: Likes":           {may, "Likes"},
		"2025-05-09":                  {Text: "2025-05-09"},
		"2025-05-09x":                 {Text: "2025-05-09x"},
		"2025-13-09 x":                {Text: "2025-13-09 x"},
		"Likes the window":            {Text: "Likes the window"},
	} {
		if diff := cmp.Diff(want, splitDate(text)); diff != "" {
			t.Errorf("splitDate(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestExcerptIsValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "bytes")
		got := excerpt(n, text)
		if !utf8.ValidString(got) || len(got) > max(n, 0)+len(" …") {
			t.Fatalf("excerpt(%d, %q) = %q", n, text, got)
		}
		if len(text) <= n && got != text {
			t.Fatalf("a short text was cut: %q", got)
		}
	})
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/memories?q=a%20b", "/chats/1#m3"} {
		if got := localPath(path, "no"); got != path {
			t.Errorf("localPath(%q) = %q", path, got)
		}
	}
	for _, path := range []string{"", "memories", "//evil.test", "/\\evil.test", "https://evil.test/", "/a\nb", "javascript:alert(1)", "\\/evil"} {
		if got := localPath(path, "no"); got != "no" {
			t.Errorf("localPath(%q) = %q, want it refused", path, got)
		}
	}
}

// TestPagesHaveNoInlineCode: the content security policy blocks inline code.
func TestPagesHaveNoInlineCode(t *testing.T) {
	t.Parallel()
	files, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := templates.ReadFile("templates/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		// A link to the settings of an app loads nothing into the page.
		page := strings.NewReplacer(`<a href="https://claude.ai/`, "", `<a href="https://chatgpt.com/`, "").Replace(string(text))
		for _, bad := range []string{" style=", "<style", "onclick", "onsubmit", "javascript:", "src=\"http", "href=\"http"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %s", f.Name(), bad)
			}
		}
	}
}
