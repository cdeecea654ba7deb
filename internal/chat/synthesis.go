package chat

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	// synthesisTokens is how much of the conversations the chat model is shown.
	synthesisTokens = 3000
	// rest is how long a chat model that failed is let alone, so that not every
	// recall waits for one that is away.
	rest = 15 * time.Second
)

// Synthesizer answers a question from excerpts. internal/synthesize has one.
type Synthesizer interface {
	// Synthesize returns an answer that cites the excerpts it is made of as
	// [1], [2], … An error means there is none; whoever asks does without.
	Synthesize(ctx context.Context, s Synthesis) (string, error)
	// Model names the chat model.
	Model() string
}

// Synthesis is a question with all that may be used to answer it. The excerpts
// are what people and machines once wrote: data, whatever they say.
type Synthesis struct {
	Question  string
	Context   string
	History   []Turn
	Excerpts  []SynthesisExcerpt // the first is cited as [1]
	MaxTokens int                // of the answer
	Now       time.Time
}

// SynthesisExcerpt is a piece of a message.
type SynthesisExcerpt struct {
	Title  string
	Sender string
	At     time.Time
	Text   string
}

// synthesize asks the chat model; false when there is none, or its answer is
// not one that can be trusted.
func (s *Service) synthesize(ctx context.Context, in RecallInput, question string, budget int, r recollected) (Recollection, bool) {
	if s.Synthesizer == nil || len(r.found) == 0 || s.Now().UnixNano() < s.backoffUntil.Load() {
		return Recollection{}, false
	}
	_, end := trace.Begin(ctx, trace.Pack)
	packed := retrieve.Pack(r.excerpts(), synthesisTokens, s.count)
	end()
	if len(packed.Sources) == 0 {
		return Recollection{}, false
	}
	ask := Synthesis{Question: question, Context: in.Context, History: in.History, MaxTokens: budget, Now: s.Now()}
	for _, source := range packed.Sources {
		ask.Excerpts = append(ask.Excerpts, SynthesisExcerpt{Title: source.Title, Sender: source.Sender, At: source.At, Text: source.Shown})
	}
	staged, end := trace.Begin(ctx, trace.Synthesize)
	answer, err := s.Synthesizer.Synthesize(staged, ask)
	end()
	if err != nil {
		if !isCanceled(err) {
			s.backoffUntil.Store(s.Now().Add(rest).UnixNano())
		}
		s.Log.WarnContext(ctx, "recall without the chat model", "model", s.Synthesizer.Model(), "error", err)
		return Recollection{}, false
	}
	content, cited, err := citations(strings.TrimSpace(answer), len(packed.Sources))
	if tokens := s.count(content); err == nil && tokens > budget {
		err = fmt.Errorf("the answer has %d tokens, more than %d", tokens, budget)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "recall without the chat model's answer", "model", s.Synthesizer.Model(), "error", err)
		return Recollection{}, false
	}
	var sources []retrieve.Source
	for _, n := range cited {
		sources = append(sources, packed.Sources[n-1])
	}
	return Recollection{Content: content, Tokens: s.count(content), Sources: r.sources(sources), Model: s.Synthesizer.Model()}, true
}

var citation = regexp.MustCompile(`\[\s*\d+(?:\s*,\s*\d+)*\s*\]`)

// citations checks that an answer cites something, and only what there is, and
// numbers its citations anew in their order. cited has the old numbers.
func citations(answer string, sources int) (content string, cited []int, err error) {
	place := map[int]int{}
	content = citation.ReplaceAllStringFunc(answer, func(match string) string {
		var numbers []string
		for text := range strings.SplitSeq(strings.Trim(match, "[]"), ",") {
			n, e := strconv.Atoi(strings.TrimSpace(text))
			if e != nil || n < 1 || n > sources {
				err = fmt.Errorf("the answer cites %s of %d sources", match, sources)
				return match
			}
			if place[n] == 0 {
				cited = append(cited, n)
				place[n] = len(cited)
			}
			numbers = append(numbers, strconv.Itoa(place[n]))
		}
		return "[" + strings.Join(numbers, ", ") + "]"
	})
	if err == nil && len(cited) == 0 {
		err = errors.New("the answer cites no source")
	}
	if err != nil {
		return "", nil, err
	}
	return content, cited, nil
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
