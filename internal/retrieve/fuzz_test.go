package retrieve

import (
	"strings"
	"testing"
	"time"
)

// FuzzParseWindow: a window begins before it ends, not in the future, and can be stored.
func FuzzParseWindow(f *testing.F) {
	for _, question := range []string{
		"What did I say last May?", "on 3 May 2026", "two weeks ago", "since January", "before 2026-05", "in the past 1000 years",
		"the day before yesterday", "until 31 February", "May the 5th, 1990", "the 1st of June's", `"last week" in 2024`, "last night", "a couple of months ago",
		"999 years ago", "after 2026-02-29", "ſince may", "0000-01", "on 0000-12-31", "this Monday İ's",
	} {
		f.Add(question, int64(1774000000), int64(0))
		f.Add(question, int64(1772323200), int64(-11*3600))
	}
	f.Fuzz(func(t *testing.T, question string, at, offset int64) {
		if at < 0 || at > 4102444800 || offset < -12*3600 || offset > 14*3600 { // now is between 1970 and 2100
			return
		}
		now := time.Unix(at, 0).In(time.FixedZone("", int(offset)))
		w, ok := ParseWindow(question, now)
		if !ok {
			return
		}
		if w.IsZero() || !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
			t.Fatalf("%q at %s: from %s to %s", question, now, w.From, w.To)
		}
		if w.From.After(now) || w.From.IsZero() && w.To.After(now) {
			t.Fatalf("%q at %s is in the future: from %s to %s", question, now, w.From, w.To)
		}
		for _, bound := range []time.Time{w.From, w.To} {
			if y := bound.Year(); !bound.IsZero() && (y < 1 || y > 9999) {
				t.Fatalf("%q at %s: from %s to %s", question, now, w.From, w.To)
			}
		}
	})
}

// FuzzTerms: the terms of a text are never empty, and changing its case does not
// change them.
func FuzzTerms(f *testing.F) {
	for _, text := range []string{"Nora's planned studies", "我对花生过敏 café", "it's 4:30", "ÅNGSTRÖM's", "s's 's", "running_fast\xff", "ﬀ ŉ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list := terms(text)
		for _, term := range list {
			if term == "" || strings.ContainsAny(term, " \t\n") {
				t.Fatalf("%q has the term %q", text, term)
			}
		}
		if again := terms(strings.ToLower(text)); len(again) != len(list) {
			t.Fatalf("%q has %q, in lower case %q", text, list, again)
		}
	})
}

// FuzzParseStatement: a user's texts can be compared, and a statement neither replaces an equal one nor repeats one that it replaces.
func FuzzParseStatement(f *testing.F) {
	for _, texts := range [][2]string{
		{"2026-05-01 I live in Oslo", "now lives in Bergen"}, {"My rent is 900 €", "The rent is 950 €"}, {"Chapter 3 ended", "Chapter 4 never ended"},
		{"I don’t eat nuts", "prefers tea to coffee"}, {"", " - 1 a"}, {"is", "\xffnow \u0130s 3"},
	} {
		f.Add(texts[0], texts[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		one, other := ParseStatement(a), ParseStatement(b)
		if one.Supersedes(one, 1) {
			t.Fatalf("%q replaces itself", a)
		}
		if one.NearDuplicate(other) && one.Supersedes(other, 1) {
			t.Fatalf("%q both replaces and repeats %q", a, b)
		}
	})
}
