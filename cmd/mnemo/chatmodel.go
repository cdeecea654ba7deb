package main

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/synthesize"
)

// chatFlags configure the chat model that answers recalls.
type chatFlags struct {
	ChatURL     string        `env:"MNEMO_CHAT_URL" help:"Base URL of an OpenAI-compatible endpoint whose model answers recalls, such as https://api.openai.com/v1. Default: recalls return excerpts."`
	ChatKey     string        `env:"MNEMO_CHAT_KEY" help:"Bearer token for the chat endpoint, if it requires one."`
	ChatModel   string        `env:"MNEMO_CHAT_MODEL" help:"Name of the model at the chat endpoint."`
	ChatTimeout time.Duration `env:"MNEMO_CHAT_TIMEOUT" default:"10s" help:"Timeout of the chat model, after which recalls return excerpts."`
}

// open returns the synthesizer, or nil if none is configured.
func (f chatFlags) open() (chat.Synthesizer, error) {
	if f.ChatURL == "" && f.ChatModel == "" {
		return nil, nil //nolint:nilnil // none is configured
	}
	model, err := synthesize.NewOpenAI(synthesize.Config{BaseURL: f.ChatURL, APIKey: f.ChatKey, Model: f.ChatModel, Timeout: f.ChatTimeout})
	if err != nil {
		return nil, fmt.Errorf("--chat-url, --chat-model: %w", err)
	}
	return model, nil
}
