package retrieve

import (
	"unicode"
	"unicode/utf8"
)

// maxPiece is the maximum estimated size of a piece in tokens. The model's window is
// 256 wordpieces; the rest is for the date and sender of chat messages, and for
// languages that the vocabulary splits more finely than estimated.
const maxPiece = 200

// maxQuery is the maximum estimated size of an embedded query in tokens. Most models
// ignore or refuse more than 512 wordpieces.
const maxQuery = 500

// Span is the byte range of a piece: text[Start:End].
type Span struct {
	Start, End int
}

// Kinds of boundaries to split at, worst first.
const (
	anywhere = iota
	wordEnd
	sentenceEnd // or the end of a line
	paragraphEnd
	borders
)

// Split splits a text into pieces that fit the embedding model's window, preferably at
// the ends of paragraphs, sentences or words. The pieces cover the text in order
// without overlap and never split a character. The empty text has none.
func Split(text string) []Span {
	s := splitter{text: text}
	for at := 0; at < len(text); {
		end, cost := atom(text, at)
		if s.cost+cost > maxPiece && at > s.start {
			s.cut(at)
		}
		s.cost += cost
		at = end
		s.mark(at)
	}
	if s.start < len(text) {
		s.spans = append(s.spans, Span{s.start, len(text)})
	}
	return s.spans
}

// beginning returns the longest beginning of a text of at most this estimated number of
// tokens that does not split a word.
func beginning(text string, tokens int) string {
	for at := 0; at < len(text); {
		end, cost := atom(text, at)
		if tokens -= cost; tokens < 0 {
			return text[:at]
		}
		at = end
	}
	return text
}

// splitter fills one piece after the other and remembers the last boundary of each
// kind in the piece.
type splitter struct {
	text  string
	spans []Span
	start int // start of the current piece
	cost  int // cost of the current piece so far
	last  [borders]border
}

// border is a boundary, with the cost of the piece up to it.
type border struct {
	at, cost int
}

// mark records the boundary at a byte offset, which ends an atom.
func (s *splitter) mark(at int) {
	s.last[borderAt(s.text, at)] = border{at, s.cost}
}

// cut ends the piece at the best boundary up to at. A sentence or paragraph boundary
// counts only if the piece is at least half full there.
func (s *splitter) cut(at int) {
	best := border{at, s.cost}
	for kind := borders - 1; kind >= anywhere; kind-- {
		b := s.last[kind]
		if b.at > s.start && (kind <= wordEnd || b.cost >= maxPiece/2) {
			best = b
			break
		}
	}
	s.spans = append(s.spans, Span{s.start, best.at})
	s.start = best.at
	s.cost -= best.cost
	for kind := range s.last {
		// Boundaries before the cut are ignored later, because they are not after start.
		s.last[kind].cost -= best.cost
	}
}

// maxRun is the maximum number of letters or digits in a word; longer runs are split.
const maxRun = 40

// atom returns the end of the indivisible part of the text at a byte offset (a word, a
// run of space, or a single character) and an estimate of its wordpieces.
func atom(text string, at int) (end, cost int) {
	r, size := utf8.DecodeRuneInString(text[at:])
	end = at + size
	switch {
	case unicode.IsSpace(r):
		for end < len(text) && end-at < longRun {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !unicode.IsSpace(r) {
				return end, 0
			}
			end += size
		}
		return end, (end - at) / longRun
	case isWord(r):
		return word(text, at)
	}
	if unicode.Is(unicode.Hangul, r) {
		return joined(text, end), hangul
	}
	return joined(text, end), 1
}

// hangul is the maximum number of wordpieces in a Korean syllable: one per letter.
const hangul = 3

// word measures a run of letters and digits. English words have one or two wordpieces;
// numbers and unknown words are split into pieces of two or three characters.
func word(text string, at int) (end, cost int) {
	letters, digits := 0, 0
	for end = at; end < len(text) && letters+digits < maxRun; {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !isWord(r) {
			break
		}
		if unicode.IsDigit(r) {
			digits++
		} else {
			letters++
		}
		end += size
	}
	end = joined(text, end)
	switch {
	case digits > 0:
		return end, (letters + digits + 1) / 2
	case letters > 8: // German compounds have pieces of three letters
		return end, (letters + 2) / 3
	}
	return end, (letters + 3) / 4
}

// longRun is the number of bytes of spaces or combining marks that count as a token. Shorter runs are no tokens. Without this
// limit, a piece could have megabytes of them.
const longRun = 64

// joined moves the end past combining marks of the preceding character.
func joined(text string, end int) int {
	for start := end; end < len(text) && end-start < longRun; {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !unicode.Is(unicode.M, r) && r != '\u200d' {
			break
		}
		end += size
	}
	return end
}

// isWord reports whether the character belongs to a script with whole words in the
// vocabulary. In other scripts each character is one wordpiece.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || unicode.Is(unicode.Latin, r)
}

// borderAt returns the kind of boundary at a byte offset, which ends an atom.
func borderAt(text string, at int) int {
	before, size := utf8.DecodeLastRuneInString(text[:at])
	if !unicode.IsSpace(before) {
		after, _ := utf8.DecodeRuneInString(text[at:])
		switch {
		case isSentenceEnd(before) && before > unicode.MaxASCII: // no space follows 。
			return sentenceEnd
		case isLetterAlone(before) || isLetterAlone(after):
			return wordEnd
		}
		return anywhere
	}
	lines := 0
	for end := at; at > 0 && end-at < longRun && unicode.IsSpace(before); {
		if before == '\n' {
			lines++
		}
		at -= size
		before, size = utf8.DecodeLastRuneInString(text[:at])
	}
	switch {
	case lines > 1:
		return paragraphEnd
	case lines == 1 || isSentenceEnd(before):
		return sentenceEnd
	}
	return wordEnd
}

func isSentenceEnd(r rune) bool {
	switch r {
	case '.', '!', '?', '…', '。', '！', '？', '।', '؟':
		return true
	}
	return false
}

// isLetterAlone reports whether the text may be split next to the character, because
// its script is written without spaces.
func isLetterAlone(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
