package extraction_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	chatKey   = "sk-extraction"
	chatModel = "facts-1"
)

// chatRequest has the fields of a completion request that the program may send. Like the
// original, the endpoint refuses others.
type chatRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
}

// chatEndpoint serves OpenAI's /chat/completions. Its model finds the facts in the messages of the
// prompt, so its answers prove what the prompt contains. The first request is over the rate limit.
type chatEndpoint struct {
	t       *testing.T
	refused atomic.Bool // the first request was
	answers atomic.Int32
}

func (e *chatEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, kind, message string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}})
	}
	in, body := chatRequest{}, json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions":
		fail(http.StatusNotFound, "invalid_request_error", "Unknown request URL: "+r.Method+" "+r.URL.Path)
		e.t.Errorf("request of %s %s", r.Method, r.URL.Path)
		return
	case r.Header.Get("Authorization") != "Bearer "+chatKey:
		fail(http.StatusUnauthorized, "invalid_request_error", "Incorrect API key provided")
		e.t.Error("request without the key")
		return
	}
	if err := body.Decode(&in); err != nil || len(in.Messages) != 2 || in.Model != chatModel || in.MaxCompletionTokens <= 0 {
		fail(http.StatusBadRequest, "invalid_request_error", "invalid request")
		e.t.Errorf("request %+v: %v", in, err)
		return
	}
	if !e.refused.Swap(true) {
		w.Header().Set("Retry-After", "1")
		fail(http.StatusTooManyRequests, "requests", "Rate limit reached")
		return
	}
	e.answers.Add(1)
	answer := e.complete(in)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", e.answers.Load()), "object": "chat.completion", "created": 1777885200, "model": in.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": answer, "refusal": nil, "annotations": []any{}}}},
		"usage": map[string]any{"prompt_tokens": 300, "completion_tokens": len(answer) / 4, "total_tokens": 300 + len(answer)/4},
	})
}

// statement is a sentence in which the user says something about the user.
var statement = regexp.MustCompile(`\bI ([a-z][^.!?]*)[.!?]`)

// complete follows the instructions of the prompt: what the user says becomes a list of facts.
func (e *chatEndpoint) complete(in chatRequest) string {
	system, user := in.Messages[0], in.Messages[1]
	if system.Role != "system" || user.Role != "user" || !strings.Contains(system.Content, "Reply with a JSON list of strings") {
		e.t.Errorf("the prompt has no instructions: %+v", in.Messages)
	}
	var conversation []struct{ Role, Text string }
	if err := json.Unmarshal([]byte(user.Content), &conversation); err != nil {
		e.t.Errorf("the conversation is no list of messages: %v\n%s", err, user.Content)
	}
	facts := []string{}
	for _, m := range conversation {
		for _, s := range statement.FindAllStringSubmatch(m.Text, -1) {
			if m.Role == "user" {
				facts = append(facts, "The user "+s[1]+".")
			}
		}
	}
	answer, err := json.Marshal(facts)
	if err != nil {
		e.t.Error(err)
	}
	return string(answer)
}

// TestMem0Inference adds conversations with the unmodified client of mem0 until the facts that
// the chat model extracted are found. The model is asked once for each conversation that it
// accepted.
func TestMem0Inference(t *testing.T) {
	t.Parallel()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := devenv.OpenMem0Packages(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	chat := &chatEndpoint{t: t}
	endpoint := httptest.NewServer(chat)
	t.Cleanup(endpoint.Close)
	i := installation.New(t, installation.Options{})
	i.Operate(t)
	i.MustCreate(t, i.Tenant("inferring", "alice"))
	var token string
	installation.Eventually(t, installation.Patience, func() string {
		if token = i.Token(t, "inferring", "alice"); token == "" {
			return "alice has no token"
		}
		return ""
	})
	server := i.Serve(t, "MNEMO_CHAT_URL="+endpoint.URL+"/v1", "MNEMO_CHAT_KEY="+chatKey, "MNEMO_CHAT_MODEL="+chatModel)

	script, err := filepath.Abs("testdata/infer.py")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "python3", script)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages.Python(), "PYTHONDONTWRITEBYTECODE=1", "MNEMO_URL="+server.URL, "MNEMO_API_KEY="+token,
		"MEM0_TELEMETRY=false", "MEM0_DIR="+home, "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := chat.answers.Load(); n != 3 || !chat.refused.Load() {
		t.Errorf("the model answered %d times, want 3 after a refusal", n)
	}
}
