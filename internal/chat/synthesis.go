package chat

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	// synthesisTokens limits the excerpts in the prompt.
	synthesisTokens = 3000
)

// ErrNoAnswer is in the chain of a Synthesizer's error if the chat model refuses a question or does not
// complete its answer: it may answer others.
var ErrNoAnswer = errors.New("the chat model does not answer the question")

// Synthesizer answers a question from excerpts.
type Synthesizer interface {
	// Synthesize returns an answer that cites excerpts as [1], [2], … After an error
	// the recall returns the excerpts instead. It returns ErrNoAnswer about this question only.
	Synthesize(ctx context.Context, s Synthesis) (string, error)
	// Model returns the name of the chat model.
	Model() string
}

// Synthesis is a question with the excerpts to answer it from. Excerpts are
// untrusted data and may contain instructions.
type Synthesis struct {
	Question  string
	Context   string
	History   []Turn
	Excerpts  []SynthesisExcerpt // the first is cited as [1]
	MaxTokens int                // of the answer
	Now       time.Time          // in the user's time zone, like the times of the excerpts
}

// SynthesisExcerpt is a piece of a message or memory.
type SynthesisExcerpt struct {
	Title  string
	Sender string
	At     time.Time // of the message, or when the memory was stored; zero if unknown
	Text   string
}

// synthesize returns the answer of the chat model; false if there is none, or if
// the answer is invalid.
func (s *Service) synthesize(ctx context.Context, in RecallInput, question string, budget int, r recollected) (Recollection, bool) {
	if s.Synthesizer == nil || r.empty() {
		return Recollection{}, false
	}
	_, end := trace.Begin(ctx, trace.Pack)
	packed := retrieve.Pack(r.excerpts(), synthesisTokens, s.count)
	end()
	if len(packed.Sources) == 0 {
		return Recollection{}, false
	}
	ask := Synthesis{Question: question, Context: in.Context, History: in.History, MaxTokens: budget, Now: retrieve.InZone(s.Now(), in.Zone)}
	for _, source := range packed.Sources {
		ask.Excerpts = append(ask.Excerpts, SynthesisExcerpt{Title: source.Title, Sender: source.Sender, At: retrieve.InZone(r.at(source), in.Zone), Text: source.Shown})
	}
	answer, ok := s.callSynthesizer(ctx, ask)
	if !ok {
		return Recollection{}, false
	}
	content, cited, err := citations(strings.TrimSpace(answer), len(packed.Sources))
	if tokens := s.count(content); err == nil && tokens > budget {
		err = fmt.Errorf("the answer has %d tokens, more than %d", tokens, budget)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "chat model answer rejected; recall returns excerpts", "model", s.Synthesizer.Model(), "error", err)
		return Recollection{}, false
	}
	var sources []retrieve.Source
	for _, n := range cited {
		sources = append(sources, packed.Sources[n-1])
	}
	return Recollection{Content: content, Tokens: s.count(content), Sources: r.sources(sources), Model: s.Synthesizer.Model()}, true
}

// callSynthesizer returns the response of the chat model, unless the model is unavailable.
func (s *Service) callSynthesizer(ctx context.Context, ask Synthesis) (answer string, ok bool) {
	call, admitted := s.synthesizer.Start(s.Now())
	if !admitted {
		return "", false
	}
	staged, end := trace.Begin(ctx, trace.Synthesize)
	answer, err := s.Synthesizer.Synthesize(staged, ask)
	end()
	outcome := breaker.Available
	switch {
	case ctx.Err() != nil:
		outcome = breaker.Unknown
	case err != nil && !errors.Is(err, ErrNoAnswer):
		outcome = breaker.Unavailable
	}
	s.synthesizer.Done(s.Now(), call, outcome)
	if err != nil {
		s.Log.WarnContext(ctx, "chat model failed; recall returns excerpts", "model", s.Synthesizer.Model(), "error", err)
	}
	return answer, err == nil
}

var citation = regexp.MustCompile(`\[\s*\d+(?:\s*,\s*\d+)*\s*\]`)

// citations validates that an answer has citations, all of existing sources, and
// renumbers them by their first occurrence. cited are the original numbers.
func citations(answer string, sources int) (content string, cited []int, err error) {
	number := map[int]int{}
	content = citation.ReplaceAllStringFunc(answer, func(match string) string {
		var numbers []string
		for text := range strings.SplitSeq(strings.Trim(match, "[]"), ",") {
			n, e := strconv.Atoi(strings.TrimSpace(text))
			if e != nil || n < 1 || n > sources {
				err = fmt.Errorf("the answer cites %s of %d sources", match, sources)
				return match
			}
			if number[n] == 0 {
				cited = append(cited, n)
				number[n] = len(cited)
			}
			numbers = append(numbers, strconv.Itoa(number[n]))
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
