package retrieve

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// stopWords carry no meaning on their own.
var stopWords = setOf("i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they " +
	"them their theirs themselves what which who whom this that these those am is are was were be been being have has had having do does did doing a an " +
	"the and but if or because as until while of at by for with about against between into through during before after above below to from up down in out " +
	"on off over under again further then once here there when where why how all any both each few more most other some such no nor not only own same so " +
	"than too very s t can will just don should now")

func setOf(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// folded returns a text in lower case with composed characters, so that equal words are equal.
func folded(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// plainWords returns the words of a text, folded, without genitive endings.
func plainWords(text string) []string {
	const letters = 5 // of a typical word with its space
	out := make([]string, 0, len(text)/letters+1)
	text = folded(text)
	start := -1
	for i, r := range text {
		switch inWord := isWordRune(r); {
		case inWord && start < 0:
			start = i
		case !inWord && start >= 0:
			out, start = appendWord(out, text[:start], text[start:i]), -1
		}
	}
	if start >= 0 {
		out = appendWord(out, text[:start], text[start:])
	}
	return out
}

// appendWord adds a word unless it is the genitive ending of the text before.
func appendWord(out []string, before, word string) []string {
	if word == "s" && len(out) > 0 && (strings.HasSuffix(before, out[len(out)-1]+"'") || strings.HasSuffix(before, out[len(out)-1]+"’")) {
		return out
	}
	return append(out, word)
}

// terms returns the stems of a text's words. A run of a script without spaces becomes its pairs of
// characters, as in a query.
func terms(text string) []string { return stems(plainWords(text)) }

func stems(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	out := make([]string, 0, len(words))
	eachStem(words, Script.Queried, func(term string) { out = append(out, term) })
	return out
}

// eachStem calls do with the terms of words, in order. words selects those of a script
// without spaces.
func eachStem(list []string, words func(s Script, run string) []Span, do func(term string)) {
	for _, w := range list {
		if strings.IndexFunc(w, func(r rune) bool { return r >= firstUnspaced }) < 0 {
			if s := stem(w); s != "" {
				do(s)
			}
			continue
		}
		EachRun(w, func(s Script, part Span) {
			run := w[part.Start:part.End]
			if s != NoScript {
				for _, p := range words(s, run) {
					do(run[p.Start:p.End])
				}
			} else if term := stem(run); term != "" {
				do(term)
			}
		})
	}
}

// stem removes the common endings of an English word, and returns "" for a stop
// word. Both sides of a comparison are stemmed, so it need not return words.
func stem(w string) string {
	if stopWords[w] {
		return ""
	}
	if len(w) == 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		return w[:3]
	}
	if len(w) <= 4 {
		return w
	}
	for _, ending := range []string{"ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly"} {
		if root, ok := strings.CutSuffix(w, ending); ok && len(root) >= 3 {
			return strings.TrimSuffix(undouble(root, ending), "e")
		}
	}
	if strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		w = w[:len(w)-1]
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// undouble restores the end of a word without its ending: plan(ned), stud(ied).
func undouble(root, ending string) string {
	if ending == "ied" || ending == "ies" {
		root += "y"
	}
	last := len(root) - 1
	if last > 2 && root[last] == root[last-1] && unicode.IsLetter(rune(root[last])) && root[last] < utf8.RuneSelf && !strings.ContainsRune("sl", rune(root[last])) {
		return root[:last]
	}
	return root
}

// bag is a text as counted terms, of which only those of a question are kept.
type bag struct {
	counts map[string]int // nil if there are none
	size   int            // of all terms
}

func bagOf(words []string, question map[string]bool) (b bag) {
	eachStem(words, Script.Indexed, func(t string) {
		b.size++
		if !question[t] {
			return
		}
		if b.counts == nil {
			b.counts = map[string]int{}
		}
		b.counts[t]++
	})
	return b
}

// rarity returns the weight of a term that df of n texts contain.
func rarity(n, df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }

// bm25 returns the score of each text for the distinct terms of a question. Terms are weighed by
// their rarity among the texts.
func bm25(question []string, texts []bag) []float64 {
	const k, b = 0.9, 0.4
	n, total := float64(len(texts)), 0
	for _, t := range texts {
		total += t.size
	}
	mean := max(float64(total)/max(n, 1), 1)
	out := make([]float64, len(texts))
	for _, term := range question {
		df := 0.0
		for _, t := range texts {
			if t.counts[term] > 0 {
				df++
			}
		}
		idf := rarity(n, df)
		for i, t := range texts {
			if tf := float64(t.counts[term]); tf > 0 {
				out[i] += idf * tf * (k + 1) / (tf + k*(1-b+b*float64(t.size)/mean))
			}
		}
	}
	return out
}
