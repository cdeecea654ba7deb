package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// space stands for a space in the pieces of SentencePiece.
const space = '\u2581'

// unigram splits texts into the pieces of SentencePiece with the highest total score, like
// XLM-RoBERTa. Its file is written by hack/devenv/multilingual.py.
type unigram struct {
	ids          map[string]int32
	scores       []float32
	normal       map[rune]string // replacements of characters
	longest      int             // bytes of the longest piece
	unknownScore float32
	bos, eos     int64
	unknown      int32
	window       int
}

func parseUnigram(raw []byte, window int) (*unigram, error) {
	var file struct {
		BOS, EOS, Unk int32
		Normalization map[string]string
		Pieces        []string
		Scores        []float32
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if len(file.Pieces) == 0 || len(file.Scores) != len(file.Pieces) {
		return nil, errors.New("not the tokenizer of a multilingual model: the numbers of pieces and scores differ")
	}
	t := &unigram{
		ids: make(map[string]int32, len(file.Pieces)), scores: file.Scores, normal: make(map[rune]string, len(file.Normalization)),
		unknownScore: slices.Min(file.Scores) - 10, bos: int64(file.BOS), eos: int64(file.EOS), unknown: file.Unk, window: window,
	}
	for id, piece := range file.Pieces {
		t.ids[piece] = int32(id)
		t.longest = max(t.longest, len(piece))
	}
	for from, to := range file.Normalization {
		r, _ := utf8.DecodeRuneInString(from)
		t.normal[r] = to
	}
	return t, nil
}

// encode returns the ids of a text: <s>, its pieces up to the window, </s>.
func (t *unigram) encode(text string) []int64 {
	// Further text cannot be in the window.
	pieces := t.pieces(t.normalize(text, t.window*t.longest))
	ids := make([]int64, 1, len(pieces)+2)
	ids[0] = t.bos
	for _, id := range pieces[:min(len(pieces), t.window-2)] {
		ids = append(ids, int64(id))
	}
	return append(ids, t.eos)
}

// count returns the number of tokens of a text, including <s> and </s>.
func (t *unigram) count(text string) int {
	return len(t.pieces(t.normalize(text, 3*len(text)+len(string(space))))) + 2
}

// normalize returns the text as its pieces are written, at most limit bytes long: with
// characters replaced by their compatible ones, and one space before each word.
func (t *unigram) normalize(text string, limit int) string {
	var b strings.Builder
	b.WriteRune(space)
	last := space
	for _, r := range text {
		replaced, ok := t.normal[r]
		if !ok {
			replaced = string(r)
		}
		for _, r := range replaced {
			if r == ' ' {
				r = space
			}
			if r == space && last == space {
				continue
			}
			if b.Len()+utf8.RuneLen(r) > limit {
				return b.String()
			}
			b.WriteRune(r)
			last = r
		}
	}
	return b.String()
}

// step is the best way to reach a position of a text.
type step struct {
	score float32
	from  int
	id    int32
	ok    bool
}

// pieces returns the pieces of a normalized text with the highest total score.
func (t *unigram) pieces(text string) []int32 {
	best := make([]step, len(text)+1)
	best[0].ok = true
	reach := func(from, to int, score float32, id int32) {
		score += best[from].score
		if !best[to].ok || score > best[to].score {
			best[to] = step{score, from, id, true}
		}
	}
	for from := 0; from < len(text); from++ {
		if !best[from].ok {
			continue
		}
		_, first := utf8.DecodeRuneInString(text[from:])
		for to := from + first; to <= min(len(text), from+t.longest); {
			if id, ok := t.ids[text[from:to]]; ok && id != t.unknown {
				reach(from, to, t.scores[id], id)
			}
			if to == len(text) {
				break
			}
			_, size := utf8.DecodeRuneInString(text[to:])
			to += size
		}
		reach(from, from+first, t.unknownScore, t.unknown)
	}
	var ids []int32
	for at := len(text); at > 0; at = best[at].from {
		ids = append(ids, best[at].id)
	}
	slices.Reverse(ids)
	return ids
}
