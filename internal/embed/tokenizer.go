package embed

import (
	"encoding/json"
	"fmt"
	"os"
)

// tokenizer splits texts into the tokens of a model's vocabulary.
type tokenizer interface {
	// encode returns the ids of a text, cut at the model's window, with the special tokens.
	encode(text string) []int64
	// count returns the number of tokens of a text, including the special ones.
	count(text string) int
}

// loadTokenizer reads tokenizer.json and rejects incompatible ones. Texts are cut at
// window tokens.
func loadTokenizer(path string, window int) (tokenizer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Model struct {
			Type string `json:"type"`
		} `json:"model"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if file.Model.Type == "Unigram" {
		return parseUnigram(raw, window)
	}
	return parseWordPiece(raw, window)
}
