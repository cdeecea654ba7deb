package main

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/synthesize"
)

// chatFlags configure the chat model that answers recalls and extracts facts.
type chatFlags struct {
	ChatURL     string        `env:"MNEMO_CHAT_URL" help:"Base URL of an OpenAI-compatible endpoint whose model answers recalls and extracts facts from messages of mem0 clients, such as https://api.openai.com/v1. Default: recalls return excerpts, and messages are stored as they are."`
	ChatKey     string        `env:"MNEMO_CHAT_KEY" help:"Bearer token for the chat endpoint, if it requires one."`
	ChatModel   string        `env:"MNEMO_CHAT_MODEL" help:"Name of the model at the chat endpoint."`
	ChatTimeout time.Duration `env:"MNEMO_CHAT_TIMEOUT" default:"10s" help:"Timeout of the chat model, after which recalls return excerpts."`
}

// chatModels are the uses of the chat model; nil if none is configured.
type chatModels struct {
	recalls chat.Synthesizer
	facts   *extract.OpenAI
}

// open returns the uses of the chat model.
func (f chatFlags) open() (chatModels, error) {
	if f.ChatURL == "" && f.ChatModel == "" {
		return chatModels{}, nil
	}
	recalls, err := synthesize.NewOpenAI(synthesize.Config{BaseURL: f.ChatURL, APIKey: f.ChatKey, Model: f.ChatModel, Timeout: f.ChatTimeout})
	if err != nil {
		return chatModels{}, fmt.Errorf("--chat-url, --chat-model: %w", err)
	}
	facts, err := extract.NewOpenAI(f.ChatURL, f.ChatKey, f.ChatModel)
	if err != nil {
		return chatModels{}, fmt.Errorf("--chat-url, --chat-model: %w", err)
	}
	return chatModels{recalls, facts}, nil
}
