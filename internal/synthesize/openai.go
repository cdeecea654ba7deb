package synthesize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/openai"
)

const (
	defaultTimeout = 10 * time.Second
	// retries is the number of retries after 408, 409, 429, 5xx or a broken
	// connection, within the timeout.
	retries = 1
	// maxAnswer is the maximum size of a response in bytes.
	maxAnswer = 1 << 20
	// thinking is the token budget for reasoning, in addition to the answer.
	thinking = 1000
)

// Config configures an endpoint.
type Config struct {
	// BaseURL precedes /chat/completions, for example https://api.openai.com/v1.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Model is the name of the model at the endpoint.
	Model string
	// Timeout bounds one answer, including retries. The default is 10 s.
	Timeout time.Duration
}

// Validate returns all errors in the configuration.
func (c Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		errs = append(errs, errors.New("base URL must be an http or https URL, such as https://api.openai.com/v1"))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model is required"))
	}
	return errors.Join(errs...)
}

// OpenAI calls an OpenAI-compatible endpoint. It is safe for concurrent use.
type OpenAI struct {
	client *openai.Client
	config Config
}

var _ chat.Synthesizer = (*OpenAI)(nil)

// NewOpenAI returns an OpenAI. It does not connect and does not read the environment.
func NewOpenAI(c Config) (*OpenAI, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure chat endpoint: %w", err)
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	client, err := openai.New(openai.Config{BaseURL: c.BaseURL, APIKey: c.APIKey, Retries: retries, MaxResponse: maxAnswer})
	if err != nil {
		return nil, fmt.Errorf("configure chat endpoint: %w", err)
	}
	return &OpenAI{client: client, config: c}, nil
}

// Model is the configured name.
func (o *OpenAI) Model() string { return o.config.Model }

// Synthesize implements chat.Synthesizer. An error names the model and never
// contains the key. It returns chat.ErrNoAnswer if the endpoint refuses the question, or the
// answer is empty or incomplete.
func (o *OpenAI) Synthesize(ctx context.Context, s chat.Synthesis) (string, error) {
	limited, cancel := context.WithTimeout(ctx, o.config.Timeout)
	defer cancel()
	answer, err := o.ask(limited, s)
	if err == nil {
		return answer, nil
	}
	status, ok := errors.AsType[*openai.StatusError](err)
	switch {
	case ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %v: %w", o.config.Timeout, err)
	case errors.Is(err, openai.ErrEmpty), errors.Is(err, openai.ErrIncomplete), ok && status.Refused():
		err = fmt.Errorf("%w: %w", chat.ErrNoAnswer, err)
	}
	return "", fmt.Errorf("ask chat model %s: %w", o.config.Model, err)
}

func (o *OpenAI) ask(ctx context.Context, s chat.Synthesis) (string, error) {
	user, err := json.Marshal(newQuestion(s))
	if err != nil {
		return "", fmt.Errorf("encode question: %w", err)
	}
	return o.client.Complete(ctx, openai.Prompt{
		Model: o.config.Model, System: instructions(s.MaxTokens), User: string(user), MaxTokens: 2*s.MaxTokens + thinking,
	})
}
