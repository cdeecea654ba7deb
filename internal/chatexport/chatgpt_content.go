package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// chatgptContent is the content of a message. The fields of each type are
// undocumented, so all known fields are read for every type.
type chatgptContent struct {
	kind          string // content_type
	language      string
	texts         lines // parts and texts, in order
	unknown       []string
	unknownFields lines // texts of unknown fields
}

// textual are the types whose text is in known fields.
var textual = map[string]bool{
	"text": true, "multimodal_text": true, "code": true, "execution_output": true,
	"tether_quote": true, "tether_browsing_display": true, "tether_browsing_code": true,
	"sonic_webpage": true, "thoughts": true, "reasoning_recap": true,
	"user_editable_context": true, "model_editable_context": true, "system_error": true,
	"citable_code_output": true, "computer_output": true,
}

// read reads the value of "content".
func (c *chatgptContent) read(s *scanner) error {
	if quoted, err := s.is('"'); err != nil || quoted {
		if err != nil {
			return err
		}
		// The oldest exports have plain text here.
		c.kind = "text"
		return c.readText(s)
	}
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "content_type":
			c.kind, err = s.text()
		case "language":
			c.language, err = s.text()
		case "parts":
			err = s.array(func() error { return c.readPart(s) })
		case "thoughts":
			err = s.array(func() error { return c.readThought(s) })
		case "text", "result", "title", "url", "content", "name", "output_str",
			"user_profile", "user_instructions", "model_set_context":
			err = c.readText(s)
		case "screenshot":
			err = c.readPart(s)
		case "summary":
			err = c.readText(s)
		case "domain", "response_format_name", "tether_id", "assets", "source_analysis_msg_id",
			"repository", "repo_summary", "structured_context", "snippet", "ref_id", "is_error", "state":
			err = s.skip()
		default:
			err = s.flatten(&c.unknownFields, s.repair(string(name)))
		}
		return err
	})
}

func (c *chatgptContent) readText(s *scanner) error {
	text, err := s.text()
	c.texts.add(text)
	return err
}

// readThought reads {summary, content} of reasoning.
func (c *chatgptContent) readThought(s *scanner) error {
	var summary, content string
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "summary":
			summary, err = s.text()
		case "content":
			content, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	c.texts.add(summary)
	c.texts.add(content)
	return err
}

// readPart reads a part: a text, or an object for an image, audio or a transcript.
func (c *chatgptContent) readPart(s *scanner) error {
	if object, err := s.is('{'); err != nil || !object {
		if err != nil {
			return err
		}
		return c.readText(s)
	}
	var kind, prompt string
	var texts lines
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "content_type":
			kind, err = s.text()
		case "text":
			var text string
			text, err = s.text()
			texts.add(text)
		case "metadata":
			prompt, err = readPrompt(s)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	c.addPart(kind, prompt, texts.String())
	return nil
}

func (c *chatgptContent) addPart(kind, prompt, text string) {
	switch {
	case kind == "image_asset_pointer":
		c.texts.add("[" + label("image", prompt) + "]")
	case strings.Contains(kind, "audio") && strings.HasSuffix(kind, "_asset_pointer"):
		c.texts.add("[audio]")
	case strings.Contains(kind, "video") && strings.HasSuffix(kind, "_asset_pointer"):
		c.texts.add("[video]")
	case kind == "" || kind == "text" || kind == "audio_transcription":
	default:
		c.unknown = append(c.unknown, kind)
		if textrule.IsBlank(text) {
			text = "[" + label("content", cut(kind, maxType)) + "]"
		}
	}
	c.texts.add(text)
}

// readPrompt reads the prompt of a generated image.
func readPrompt(s *scanner) (prompt string, err error) {
	err = s.object(func(name []byte) error {
		if string(name) != "dalle" && string(name) != "generation" {
			return s.skip()
		}
		return s.object(func(name []byte) (err error) {
			if string(name) == "prompt" {
				prompt, err = s.text()
				return err
			}
			return s.skip()
		})
	})
	return prompt, err
}

// text returns the text of the message and notes unknown content, except in hidden
// messages, which are omitted anyway.
func (c *chatgptContent) text(files []string, hidden bool, notes *Notes) string {
	if hidden {
		return ""
	}
	for _, kind := range c.unknown {
		notes.unknown(label("content", kind), 1)
	}
	var out lines
	for _, name := range files {
		out.add("[" + label("file", name) + "]")
	}
	text := c.texts.String()
	switch {
	case c.kind == "code" && !textrule.IsBlank(text):
		out.add(fenced(c.language, text))
	case c.kind == "thoughts" || c.kind == "reasoning_recap":
		out.labeled("thinking", text)
	case textual[c.kind] || c.kind == "" && c.unknownFields.String() == "":
		out.add(text)
	default:
		notes.unknown(label("content", c.kind), 1)
		out.add(text)
		out.add(c.unknownFields.String())
		if out.String() == "" {
			out.add("[" + label("content", cut(c.kind, maxType)) + "]")
		}
	}
	return out.String()
}

// fenced returns a fenced code block.
func fenced(language, code string) string {
	if language == "unknown" {
		language = ""
	}
	return "```" + language + "\n" + code + "\n```"
}
