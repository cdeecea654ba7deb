package main

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/synthesize"
)

// chatFlags say which chat model writes what is recalled, if any.
type chatFlags struct {
	ChatURL     string        `env:"MNEMO_CHAT_URL" help:"Base URL of an OpenAI-compatible endpoint whose model answers recalls, such as https://api.openai.com/v1. Default: recalls are the best excerpts themselves."`
	ChatKey     string        `env:"MNEMO_CHAT_KEY" help:"Bearer token for that endpoint, if it asks for one."`
	ChatModel   string        `env:"MNEMO_CHAT_MODEL" help:"Name of the model at that endpoint."`
	ChatTimeout time.Duration `env:"MNEMO_CHAT_TIMEOUT" default:"10s" help:"Longest wait for its answer before the excerpts are answered instead."`
}

// open makes the synthesizer; nil when none is configured.
func (f chatFlags) open() (chat.Synthesizer, error) {
	if f.ChatURL == "" && f.ChatModel == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	model, err := synthesize.NewOpenAI(synthesize.Config{BaseURL: f.ChatURL, APIKey: f.ChatKey, Model: f.ChatModel, Timeout: f.ChatTimeout})
	if err != nil {
		return nil, fmt.Errorf("--chat-url, --chat-model: %w", err)
	}
	return model, nil
}
