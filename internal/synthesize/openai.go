package synthesize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

const (
	defaultTimeout = 10 * time.Second
	// retries is how often a request is repeated after 408, 409, 429, 5xx or a
	// broken connection, all within the timeout.
	retries = 1
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 1 << 20
	// thinking is what a model may spend beside the answer, in tokens.
	thinking = 1000
	// maxMessage bounds how much of an endpoint's own message is passed on, in
	// bytes: it may quote the excerpts.
	maxMessage = 200
)

// Config says which endpoint to ask and for what.
type Config struct {
	// BaseURL is what precedes /chat/completions, such as https://api.openai.com/v1.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Model is the name the endpoint knows the model by.
	Model string
	// Timeout bounds one answer, repetitions included. 0 is 10 s.
	Timeout time.Duration
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		errs = append(errs, errors.New("base URL must be an http or https URL, such as https://api.openai.com/v1"))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model must be named"))
	}
	return errors.Join(errs...)
}

// OpenAI asks an OpenAI-compatible endpoint. It is safe for concurrent use.
type OpenAI struct {
	service openai.ChatCompletionService
	config  Config
}

var _ chat.Synthesizer = (*OpenAI)(nil)

// NewOpenAI makes an OpenAI; it does not connect. Nothing is read from the
// environment.
func NewOpenAI(c Config) (*OpenAI, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure chat endpoint: %w", err)
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	opts := []option.RequestOption{
		option.WithBaseURL(c.BaseURL), option.WithMaxRetries(retries),
		option.WithHTTPClient(&http.Client{Transport: limited{http.DefaultTransport}}),
	}
	if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	return &OpenAI{service: openai.NewChatCompletionService(opts...), config: c}, nil
}

// Model is the configured name.
func (o *OpenAI) Model() string { return o.config.Model }

// Synthesize implements chat.Synthesizer. An error names the model and never
// contains the key.
func (o *OpenAI) Synthesize(ctx context.Context, s chat.Synthesis) (string, error) {
	limited, cancel := context.WithTimeout(ctx, o.config.Timeout)
	defer cancel()
	answer, err := o.ask(limited, s)
	if err == nil {
		return answer, nil
	}
	if ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", o.config.Timeout, err)
	}
	return "", fmt.Errorf("ask chat model %s: %w", o.config.Model, err)
}

func (o *OpenAI) ask(ctx context.Context, s chat.Synthesis) (string, error) {
	user, err := json.Marshal(newQuestion(s))
	if err != nil {
		return "", fmt.Errorf("write question: %w", err)
	}
	answer, err := o.service.New(ctx, openai.ChatCompletionNewParams{
		Model: o.config.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(instructions(s.MaxTokens)), openai.UserMessage(string(user)),
		},
		MaxCompletionTokens: openai.Int(int64(2*s.MaxTokens + thinking)),
	})
	if err != nil {
		return "", o.explain(err)
	}
	if answer == nil || len(answer.Choices) == 0 {
		return "", errors.New("the answer is empty")
	}
	choice := answer.Choices[0]
	if choice.FinishReason != "" && choice.FinishReason != "stop" {
		return "", fmt.Errorf("the answer is not whole: it ended by %.40q", choice.FinishReason)
	}
	if strings.TrimSpace(choice.Message.Content) == "" {
		return "", errors.New("the answer is empty")
	}
	return choice.Message.Content, nil
}

// explain turns the library's error into one that says what happened and keeps
// the key and the excerpts to itself.
func (o *OpenAI) explain(err error) error {
	api, ok := errors.AsType[*openai.Error](err)
	if !ok {
		return err
	}
	message := api.Message
	if o.config.APIKey != "" {
		message = strings.ReplaceAll(message, o.config.APIKey, "(key)")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return fmt.Errorf("status %d %s: %s", api.StatusCode, http.StatusText(api.StatusCode), message)
}

// limited is a transport whose answers end at maxAnswer.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
