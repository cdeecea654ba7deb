package extract

import (
	"context"
	_ "embed" // of the prompt
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/openai"
)

const (
	// timeout bounds one answer. It is shorter than the timeout of the job.
	timeout = 90 * time.Second
	// maxResponse is the maximum size of a response in bytes.
	maxResponse = 1 << 20
	// maxTokens is the token budget of an answer, including reasoning.
	maxTokens = 8000
	maxFacts  = 100
	maxFact   = 1000 // bytes
)

//go:embed prompt.txt
var instructions string

// ErrInvalid is the cause of errors about an answer that is not a JSON list of short strings.
var ErrInvalid = errors.New("the model did not return a list of facts")

// OpenAI extracts facts with a chat model at an OpenAI-compatible endpoint.
type OpenAI struct {
	client *openai.Client
	model  string
}

// NewOpenAI returns an OpenAI. It does not connect.
func NewOpenAI(baseURL, key, model string) (*OpenAI, error) {
	client, err := openai.New(openai.Config{BaseURL: baseURL, APIKey: key, Timeout: timeout, MaxResponse: maxResponse})
	if err != nil {
		return nil, fmt.Errorf("configure chat endpoint: %w", err)
	}
	return &OpenAI{client, model}, nil
}

// Extract returns the facts in messages. It returns ErrInvalid if the answer is invalid, or the model
// refuses these messages, and Unavailable for all other errors.
func (o *OpenAI) Extract(ctx context.Context, messages []Message) ([]string, error) {
	user, err := json.Marshal(messages)
	if err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	answer, err := o.client.Complete(ctx, openai.Prompt{Model: o.model, System: instructions, User: string(user), MaxTokens: maxTokens})
	status, ok := errors.AsType[*openai.StatusError](err)
	switch {
	case err == nil:
		return parse(answer)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, openai.ErrEmpty), errors.Is(err, openai.ErrIncomplete), ok && status.Refused():
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil, fault.Wrap(fault.Unavailable, err, "the chat model %s is unavailable", o.model)
}

// parse returns the facts of an answer, which may be in a Markdown code block.
func parse(answer string) ([]string, error) {
	answer = strings.TrimSpace(answer)
	if code, ok := strings.CutPrefix(answer, "```"); ok {
		answer = strings.TrimSuffix(strings.TrimPrefix(code, "json"), "```")
	}
	var items []*string
	if err := json.Unmarshal([]byte(answer), &items); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if items == nil || len(items) > maxFacts {
		return nil, fmt.Errorf("%w: null or %d facts", ErrInvalid, len(items))
	}
	facts := make([]string, len(items))
	for i, item := range items {
		if item == nil || len(*item) > maxFact || (memory.CreateInput{Text: *item}).Validate() != nil {
			return nil, fmt.Errorf("%w: element %d is not a short text", ErrInvalid, i)
		}
		facts[i] = *item
	}
	return facts, nil
}
