package retrieve

import (
	"unicode"
	"unicode/utf8"
)

// maxPiece is how many tokens a piece may be estimated at. The window is 256
// wordpieces; the rest is for the date and sender of a chat's piece, and for
// languages the vocabulary cuts finer than the estimate.
const maxPiece = 200

// Span is a piece's place in a text, in bytes: text[Start:End].
type Span struct {
	Start, End int
}

// The borders a text may be cut at, worst first.
const (
	anywhere = iota
	wordEnd
	sentenceEnd // or the end of a line
	paragraphEnd
	borders
)

// Split cuts a text into pieces that fit the embedding model's window, at the
// ends of paragraphs, sentences or words where it can. The pieces cover the
// text in order without overlap and never cut a character. "" has none.
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

// splitter fills one piece after the other and remembers, for each sort of
// border, the last one in the piece.
type splitter struct {
	text  string
	spans []Span
	start int // where the piece begins
	cost  int // of what is in it
	last  [borders]border
}

// border is a place to cut, with what the piece costs up to it.
type border struct {
	at, cost int
}

// mark notes the border that is at the byte, which ends an atom.
func (s *splitter) mark(at int) {
	s.last[borderAt(s.text, at)] = border{at, s.cost}
}

// cut ends the piece at the best border up to at: a good one counts only if it
// leaves at least half a piece.
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
		// What lies before the cut is forgotten: it is not after start any more.
		s.last[kind].cost -= best.cost
	}
}

// maxRun is how many letters or digits are kept together; longer runs are no words.
const maxRun = 40

// atom returns where the indivisible part of the text at the byte ends, and an
// estimate of its wordpieces: a word, a run of space, or a single character.
func atom(text string, at int) (end, cost int) {
	r, size := utf8.DecodeRuneInString(text[at:])
	end = at + size
	switch {
	case unicode.IsSpace(r):
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !unicode.IsSpace(r) {
				break
			}
			end += size
		}
		return end, 0
	case isWord(r):
		return word(text, at)
	}
	if unicode.Is(unicode.Hangul, r) {
		return joined(text, end), hangul
	}
	return joined(text, end), 1
}

// hangul is how many wordpieces a Korean syllable is at most: its letters.
const hangul = 3

// word measures a run of letters and digits. English words are one or two
// wordpieces; numbers and made-up words are cut to pieces of two or three.
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
	case letters > 8: // German compounds are cut to pieces of three
		return end, (letters + 2) / 3
	}
	return end, (letters + 3) / 4
}

// joined moves the end past marks that belong to the character before it.
func joined(text string, end int) int {
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !unicode.Is(unicode.M, r) && r != '\u200d' {
			break
		}
		end += size
	}
	return end
}

// isWord reports whether the character is of a script that the vocabulary has
// whole words of. Characters of all others are a wordpiece each.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || unicode.Is(unicode.Latin, r)
}

// borderAt says what sort of border is at the byte, which ends an atom.
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
	for at > 0 && unicode.IsSpace(before) {
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

// isLetterAlone reports whether the character may be parted from its
// neighbours: those of scripts that write no spaces.
func isLetterAlone(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
