package rerank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/openai"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// route is the same in all dialects.
	route = "rerank"
	// maxAnswer is the maximum size of a response in bytes. Jina may return the texts.
	maxAnswer = 4 << 20
)

// Dialect is the form of the requests of an endpoint.
type Dialect string

// The dialects.
const (
	TEI    Dialect = "tei"    // text-embeddings-inference: {"query", "texts"}
	Cohere Dialect = "cohere" // also vLLM, Infinity and LiteLLM: {"model", "query", "documents", "top_n"}
	Jina   Dialect = "jina"   // that of Cohere, and {"return_documents": false}
)

// Dialects lists all dialects.
var Dialects = []Dialect{TEI, Cohere, Jina}

// Config configures an endpoint.
type Config struct {
	// URL precedes /rerank, for example https://api.cohere.com/v2.
	URL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Dialect is the form of the requests.
	Dialect Dialect
	// Model is the name of the model at the endpoint. TEI serves one model and needs none.
	Model string
}

// Validate returns all errors in the configuration.
func (c Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		errs = append(errs, errors.New("URL must be an http or https URL, such as https://api.cohere.com/v2"))
	}
	if !slices.Contains(Dialects, c.Dialect) {
		errs = append(errs, fmt.Errorf("dialect must be tei, cohere or jina, not %q", c.Dialect))
	}
	if c.Model == "" && c.Dialect != TEI {
		errs = append(errs, errors.New("model is required"))
	}
	return errors.Join(errs...)
}

// Client calls an endpoint. It is safe for concurrent use.
type Client struct {
	client *openai.Client
	config Config
}

var _ retrieve.Reranker = (*Client)(nil)

// New returns a Client. It does not connect and does not read the environment.
func New(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure reranker: %w", err)
	}
	// Within the time budget of a search there is no time for retries.
	client, err := openai.New(openai.Config{BaseURL: c.URL, APIKey: c.APIKey, MaxResponse: maxAnswer})
	if err != nil {
		return nil, fmt.Errorf("configure reranker: %w", err)
	}
	return &Client{client: client, config: c}, nil
}

// request is the body of POST /rerank.
type request struct {
	Query string `json:"query"`
	// Texts and Truncate are those of TEI. Without truncate it rejects texts that exceed the
	// window of the model.
	Texts    []string `json:"texts,omitempty"`
	Truncate bool     `json:"truncate,omitempty"`

	Model           string   `json:"model,omitempty"`
	Documents       []string `json:"documents,omitempty"`
	TopN            int      `json:"top_n,omitempty"`
	ReturnDocuments *bool    `json:"return_documents,omitempty"`
}

func (c *Client) request(query string, texts []string) request {
	if c.config.Dialect == TEI {
		return request{Query: query, Texts: texts, Truncate: true}
	}
	r := request{Query: query, Model: c.config.Model, Documents: texts, TopN: len(texts)}
	if c.config.Dialect == Jina {
		r.ReturnDocuments = new(bool)
	}
	return r
}

// result is the score of a text: "score" from TEI, "relevance_score" from the others.
type result struct {
	Index          *int     `json:"index"`
	Score          *float64 `json:"score"`
	RelevanceScore *float64 `json:"relevance_score"`
}

// response is a list of results, or an object with one.
type response struct{ results []result }

// UnmarshalJSON decodes either form.
func (r *response) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, &r.results)
	}
	var object struct {
		Results []result `json:"results"`
	}
	err := json.Unmarshal(raw, &object)
	r.results = object.Results
	return err
}

// Rerank implements retrieve.Reranker. No error contains the key or a text.
func (c *Client) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	var answer response
	if err := c.client.Post(ctx, route, c.request(query, texts), &answer); err != nil {
		return nil, fmt.Errorf("call %s: %w", c.client.Endpoint(route), err)
	}
	scores := make([]float64, len(texts))
	for i := range scores {
		scores[i] = math.NaN()
	}
	for _, r := range answer.results {
		score := r.RelevanceScore
		if score == nil {
			score = r.Score
		}
		if r.Index == nil || score == nil || *r.Index < 0 || *r.Index >= len(texts) {
			return nil, errors.New("the response of the reranker has an invalid result")
		}
		scores[*r.Index] = *score
	}
	if slices.ContainsFunc(scores, math.IsNaN) {
		return nil, errors.New("the response of the reranker does not score every text")
	}
	return scores, nil
}
