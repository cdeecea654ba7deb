package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// maxWord is the longest word, in characters, that is looked up; a longer one is
// [UNK].
const maxWord = 100

// wordPiece splits texts into the WordPiece tokens of the model's vocabulary, with the same
// result as Hugging Face tokenizers for the same tokenizer.json.
type wordPiece struct {
	starts    map[string]int32 // pieces that begin a word
	suffixes  map[string]int32 // pieces that continue a word, without their "##"
	special   map[string]int32 // [CLS] and others, recognized literally in texts
	longest   int              // bytes of the longest piece
	unk       int32
	cls, sep  int32
	maxTokens int
}

// vocabSize is the number of tokens of uncased BERT, which all models share.
const vocabSize = 30522

// parseWordPiece rejects the tokenizers of other models. Texts are cut at window tokens.
func parseWordPiece(raw []byte, window int) (*wordPiece, error) {
	var file struct {
		Normalizer struct {
			Type      string `json:"type"`
			Lowercase bool   `json:"lowercase"`
		} `json:"normalizer"`
		Model struct {
			Type     string           `json:"type"`
			Unk      string           `json:"unk_token"`
			Prefix   string           `json:"continuing_subword_prefix"`
			MaxChars int              `json:"max_input_chars_per_word"`
			Vocab    map[string]int32 `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	m := file.Model
	// Older files omit the model's type.
	if m.Type != "WordPiece" && m.Type != "" || m.Prefix != "##" || m.MaxChars != maxWord || m.Unk != "[UNK]" ||
		file.Normalizer.Type != "BertNormalizer" || !file.Normalizer.Lowercase {
		return nil, errors.New("not the tokenizer of an uncased BERT model")
	}
	return newWordPiece(m.Vocab, window)
}

func newWordPiece(vocab map[string]int32, window int) (*wordPiece, error) {
	if len(vocab) != vocabSize {
		return nil, fmt.Errorf("the vocabulary has %d entries, want %d", len(vocab), vocabSize)
	}
	t := &wordPiece{starts: map[string]int32{}, suffixes: map[string]int32{}, special: map[string]int32{}, maxTokens: window}
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		id, ok := vocab[name]
		if !ok {
			return nil, fmt.Errorf("the vocabulary lacks %s", name)
		}
		t.special[name] = id
	}
	t.unk, t.cls, t.sep = t.special["[UNK]"], t.special["[CLS]"], t.special["[SEP]"]
	for piece, id := range vocab {
		if id < 0 || id >= vocabSize {
			return nil, fmt.Errorf("the vocabulary's entry %q has id %d", piece, id)
		}
		t.longest = max(t.longest, len(piece))
		if suffix, ok := strings.CutPrefix(piece, "##"); ok {
			t.suffixes[suffix] = id
		} else {
			t.starts[piece] = id
		}
	}
	return t, nil
}

// encode returns the ids of a text: [CLS], its tokens up to the window, [SEP].
func (t *wordPiece) encode(text string) []int64 {
	ids := make([]int64, 1, min(len(text)/3+4, t.maxTokens))
	ids[0] = int64(t.cls)
	for id := range t.tokens(text) {
		if len(ids) == t.maxTokens-1 {
			break
		}
		ids = append(ids, int64(id))
	}
	return append(ids, int64(t.sep))
}

// count returns the number of tokens of a text, including [CLS] and [SEP].
func (t *wordPiece) count(text string) int {
	n := 2
	for range t.tokens(text) {
		n++
	}
	return n
}

// tokens yields the ids of a text without [CLS] and [SEP], to its end.
func (t *wordPiece) tokens(text string) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		w := words{t: t, yield: yield}
		for text != "" && !w.stopped {
			if id, size := t.specialAt(text); size > 0 {
				w.flush()
				w.emit(id)
				text = text[size:]
				continue
			}
			r, size := utf8.DecodeRuneInString(text)
			text = text[size:]
			w.add(r)
		}
		w.flush()
	}
}

// specialAt returns the special token that text begins with, and its length.
func (t *wordPiece) specialAt(text string) (id int32, size int) {
	if text[0] != '[' {
		return 0, 0
	}
	end := strings.IndexByte(text[:min(len(text), len("[MASK]"))], ']') + 1
	id, ok := t.special[text[:end]]
	if !ok {
		return 0, 0
	}
	return id, end
}

// words collects normalized characters into words and splits these into pieces.
type words struct {
	t       *wordPiece
	yield   func(int32) bool
	stopped bool
	buffer  []rune // scratch of add
	word    []byte
	chars   int // characters in word, or maxWord+1 for more
}

// add adds the text's next character.
func (w *words) add(r rune) {
	w.buffer = appendNormalized(w.buffer[:0], r)
	for _, n := range w.buffer {
		switch {
		case n == ' ':
			w.flush()
		case isPunctuation(n):
			w.flush()
			w.word, w.chars = utf8.AppendRune(w.word, n), 1
			w.flush()
		case w.chars < maxWord:
			w.word = utf8.AppendRune(w.word, n)
			w.chars++
		default:
			w.chars = maxWord + 1 // too long: the exact length is irrelevant
		}
	}
}

func (w *words) emit(id int32) {
	if !w.stopped && !w.yield(id) {
		w.stopped = true
	}
}

// flush emits the pieces of the word, repeatedly the longest one that fits, or [UNK] for
// the whole word if none fits at some point.
func (w *words) flush() {
	defer func() { w.word, w.chars = w.word[:0], 0 }()
	if w.chars == 0 {
		return
	}
	var pieces [maxWord]int32
	n := 0
	vocab := w.t.starts
	for unread := w.word; len(unread) > 0; vocab = w.t.suffixes {
		id, size := w.t.longestPiece(vocab, unread)
		if size == 0 || w.chars > maxWord {
			w.emit(w.t.unk)
			return
		}
		pieces[n] = id
		n++
		unread = unread[size:]
	}
	for _, id := range pieces[:n] {
		w.emit(id)
	}
}

// longestPiece returns the longest entry of vocab that word begins with, and its
// length in bytes, 0 without one.
func (t *wordPiece) longestPiece(vocab map[string]int32, word []byte) (id int32, size int) {
	for size = min(len(word), t.longest); size > 0; size-- {
		if id, ok := vocab[string(word[:size])]; ok {
			return id, size
		}
	}
	return 0, 0
}
