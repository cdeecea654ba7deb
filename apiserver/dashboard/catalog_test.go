package dashboard

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// TestMessagesAreTranslated: every catalog has every message that is used, and no other.
// English needs an entry only for a message whose text differs from its key.
func TestMessagesAreTranslated(t *testing.T) {
	t.Parallel()
	used := usedMessages(t)
	for lang, c := range catalogs {
		for key, file := range used {
			if _, ok := c.Messages[key]; !ok && lang != "en" {
				t.Errorf("messages/%s.json has no %q of %s", lang, key, file)
			}
		}
		for key := range c.Messages {
			if _, ok := used[key]; !ok {
				t.Errorf("messages/%s.json has the unused %q", lang, key)
			}
		}
	}
}

// verbsOf returns the verbs of a text by the number of their argument, and its tags.
func verbsOf(text string) (verbs, tags []string) {
	next := 1
	for _, v := range regexp.MustCompile(`%(?:\[(\d)\])?([a-z])`).FindAllStringSubmatch(text, -1) {
		n := strconv.Itoa(next)
		if v[1] != "" {
			n = v[1]
		} else {
			next++
		}
		verbs = append(verbs, n+v[2])
	}
	tags = regexp.MustCompile(`<[^>]*>`).FindAllString(text, -1)
	slices.Sort(verbs)
	slices.Sort(tags)
	return verbs, tags
}

// TestTranslationsAgree: a translation has the placeholders and tags of its key, and the
// plural forms of its language if any catalog has plural forms.
func TestTranslationsAgree(t *testing.T) {
	t.Parallel()
	agree := func(t *testing.T, lang, key, text string) {
		t.Helper()
		wantVerbs, wantTags := verbsOf(key)
		verbs, tags := verbsOf(text)
		if diff := cmp.Diff([][]string{wantVerbs, wantTags}, [][]string{verbs, tags}); diff != "" {
			t.Errorf("messages/%s.json: %q has other placeholders or tags than %q (-want +got):\n%s", lang, text, key, diff)
		}
	}
	for lang, c := range catalogs {
		for key, e := range c.Messages {
			for _, text := range e {
				agree(t, lang, key, text)
			}
			for _, other := range catalogs {
				if len(e) == 1 && len(other.Messages[key]) > 1 {
					t.Errorf("messages/%s.json: %q must have plural forms", lang, key)
				}
			}
			if len(e) > 1 {
				for _, form := range formsOf(lang) {
					if e[form] == "" {
						t.Errorf("messages/%s.json: %q lacks the plural form %s", lang, key, form)
					}
				}
			}
		}
		for key, text := range c.Errors {
			agree(t, lang, key, text)
		}
	}
}

// formsOf returns the plural forms of a language.
func formsOf(lang string) []string {
	used := map[string]bool{}
	for n := range 200 {
		used[map[plural.Form]string{plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other"}[plural.Cardinal.MatchPlural(language.MustParse(lang), n, 0, 0, 0, 0)]] = true
	}
	return slices.Sorted(maps.Keys(used))
}
