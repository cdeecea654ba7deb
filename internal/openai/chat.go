package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Errors about the answer of a model.
var (
	ErrEmpty      = errors.New("the answer is empty")
	ErrIncomplete = errors.New("the answer is incomplete")
)

// Prompt is a request to a chat model.
type Prompt struct {
	Model     string
	System    string // the instructions
	User      string // the data
	MaxTokens int    // of the answer, including reasoning
}

type completionRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxCompletionTokens int           `json:"max_completion_tokens"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type completionResponse struct {
	Choices []struct {
		FinishReason string      `json:"finish_reason"`
		Message      chatMessage `json:"message"`
	} `json:"choices"`
}

// Complete returns the answer of a chat model. It returns [ErrEmpty] or [ErrIncomplete] if the
// model answers otherwise.
func (c *Client) Complete(ctx context.Context, p Prompt) (string, error) {
	var answer completionResponse // stays empty for "null"
	err := c.Post(ctx, "chat/completions", completionRequest{
		Model: p.Model, Messages: []chatMessage{{"system", p.System}, {"user", p.User}}, MaxCompletionTokens: p.MaxTokens,
	}, &answer)
	if err != nil {
		return "", err
	}
	if len(answer.Choices) == 0 {
		return "", ErrEmpty
	}
	choice := answer.Choices[0]
	if choice.FinishReason != "" && choice.FinishReason != "stop" {
		return "", fmt.Errorf("%w: finish reason %.40q", ErrIncomplete, choice.FinishReason)
	}
	if strings.TrimSpace(choice.Message.Content) == "" {
		return "", ErrEmpty
	}
	return choice.Message.Content, nil
}
