package embed

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/mnemo-dev/mnemo/internal/openai"
)

const (
	// maxInputs is the maximum number of texts in one request. OpenAI accepts 2,048,
	// others fewer, and a smaller request is cheaper to retry.
	maxInputs      = 128
	defaultTimeout = 30 * time.Second
	defaultRetries = 2
	// maxResponse allows 128 vectors of 10,000 numbers.
	maxResponse = 64 << 20
	route       = "embeddings"
)

// OpenAIConfig configures an endpoint.
type OpenAIConfig struct {
	// BaseURL precedes /embeddings, for example https://api.openai.com/v1.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Model is the name of the model at the endpoint.
	Model string
	// Dimensions is the length of the model's vectors; every response is checked.
	Dimensions int
	// RequestDimensions sends Dimensions with each request, for models that can
	// shorten their vectors. Endpoints of other models reject the parameter.
	RequestDimensions bool
	// Timeout bounds one attempt. The default is 30 s.
	Timeout time.Duration
	// Retries is the number of retries after 408, 409, 429, 5xx or a broken
	// connection, with exponential backoff or Retry-After. The default is 2;
	// negative disables retries.
	Retries int
}

// Validate returns all errors in the configuration.
func (c OpenAIConfig) Validate() error {
	var errs []error
	if u, err := url.Parse(c.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		errs = append(errs, errors.New("base URL must be an http or https URL, such as https://api.openai.com/v1"))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model is required"))
	}
	if c.Dimensions <= 0 {
		errs = append(errs, errors.New("dimensions is required: the length of the model's vectors"))
	}
	return errors.Join(errs...)
}

// OpenAI embeds through an OpenAI-compatible endpoint: OpenAI, Azure, vLLM,
// text-embeddings-inference, Ollama and others. It is safe for concurrent use.
type OpenAI struct {
	client *openai.Client
	config OpenAIConfig
}

// NewOpenAI returns an OpenAI. It does not connect and does not read the environment.
func NewOpenAI(config OpenAIConfig) (*OpenAI, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure embedding endpoint: %w", err)
	}
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if config.Retries == 0 {
		config.Retries = defaultRetries
	}
	client, err := openai.New(openai.Config{
		BaseURL: config.BaseURL, APIKey: config.APIKey, Timeout: config.Timeout,
		Retries: max(config.Retries, 0), MaxResponse: maxResponse,
	})
	if err != nil {
		return nil, fmt.Errorf("configure embedding endpoint: %w", err)
	}
	return &OpenAI{client: client, config: config}, nil
}

// Embed returns one vector of length 1 and Dimensions numbers per text, in order,
// asking for up to 128 at a time. An error names the endpoint and never contains
// the key; a status other than 2xx is an *[openai.StatusError].
func (o *OpenAI) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for first := 0; first < len(texts); first += maxInputs {
		batch, err := o.request(ctx, texts[first:min(first+maxInputs, len(texts))])
		if err != nil {
			return nil, fmt.Errorf("embed %d texts with model %s at %s: %w", len(texts), o.config.Model, o.client.Endpoint(route), err)
		}
		vectors = append(vectors, batch...)
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a search query. The protocol does not distinguish queries
// from passages.
func (o *OpenAI) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := o.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// Model is the configured name.
func (o *OpenAI) Model() string { return o.config.Model }

// Dimensions is the configured length.
func (o *OpenAI) Dimensions() int { return o.config.Dimensions }

// embeddingRequest is the body of POST /embeddings.
type embeddingRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type embeddingResponse struct {
	Data []embedding `json:"data"`
}

type embedding struct {
	Index     int     `json:"index"`
	Embedding numbers `json:"embedding"`
}

// request embeds one batch.
func (o *OpenAI) request(ctx context.Context, texts []string) ([][]float32, error) {
	body := embeddingRequest{Model: o.config.Model, Input: inputs(texts)}
	if o.config.RequestDimensions {
		body.Dimensions = o.config.Dimensions
	}
	var answer *embeddingResponse
	if err := o.client.Post(ctx, route, body, &answer); err != nil {
		return nil, err
	}
	if answer == nil { // a body of "null"
		return nil, errors.New("the response is empty")
	}
	return o.vectors(answer.Data, len(texts))
}

// inputs replaces empty texts, which OpenAI rejects, by a space.
func inputs(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		if text == "" {
			text = " "
		}
		list[i] = text
	}
	return list
}

// vectors validates a response with want embeddings and orders it like the texts.
func (o *OpenAI) vectors(data []embedding, want int) ([][]float32, error) {
	if len(data) != want {
		return nil, fmt.Errorf("the response has %d embeddings, want %d", len(data), want)
	}
	vectors := make([][]float32, want)
	for _, d := range data {
		if d.Index < 0 || d.Index >= want || vectors[d.Index] != nil {
			return nil, fmt.Errorf("the indexes in the response are not 0 to %d, each once: %d", want-1, d.Index)
		}
		if len(d.Embedding) != o.config.Dimensions {
			return nil, fmt.Errorf("the model returns %d dimensions, but %d are configured", len(d.Embedding), o.config.Dimensions)
		}
		vector := make([]float32, len(d.Embedding))
		for i, x := range d.Embedding {
			vector[i] = float32(x)
		}
		if !normalize(vector) {
			return nil, unusableVector{d.Index}
		}
		vectors[d.Index] = vector
	}
	return vectors, nil
}

// unusableVector is the error of a response with a vector that has no direction.
type unusableVector struct{ index int }

// Error implements error.
func (e unusableVector) Error() string {
	return fmt.Sprintf("embedding %d of the response is zero or not finite", e.index)
}

// Refused reports that the text is the cause: see retrieve.IsRefused.
func (unusableVector) Refused() bool { return true }

// numbers is a vector as an array or, from some endpoints, as base64 of
// little-endian 32-bit floats.
type numbers []float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *numbers) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]float64)(n))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return errors.New("the embedding is neither numbers nor base64")
	}
	*n = make(numbers, len(raw)/4)
	for i := range *n {
		(*n)[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return nil
}
