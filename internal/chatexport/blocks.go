package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// blocks are the content of a message: text, reasoning, tool calls and tool
// results.
type blocks struct {
	level   int // nesting level
	texts   lines
	spoken  bool // there is a block of text, or a plain text
	results bool // there is a tool result
	unknown []string
}

// note notes unknown types of blocks.
func (c *blocks) note(notes *Notes) {
	for _, kind := range c.unknown {
		notes.unknown(label("content", kind), 1)
	}
}

// block is a block of any type.
type block struct {
	kind, name    string
	text          lines // its own texts
	input         lines // input of a tool call
	call          call
	inner         blocks
	unknownFields lines // texts of unknown fields
}

// maxLevel is the maximum nesting of blocks; each level copies its text.
const maxLevel = 4

// read reads the blocks; a plain string is one block of text.
func (c *blocks) read(s *scanner) error {
	if c.level > maxLevel {
		return s.flatten(&c.texts, "")
	}
	quoted, err := s.is('"')
	if err != nil {
		return err
	}
	if quoted {
		text, err := s.text()
		c.spoken = c.spoken || !textrule.IsBlank(text)
		c.texts.add(text)
		return err
	}
	return s.array(func() error {
		if quoted, err := s.is('"'); err != nil || quoted {
			if err != nil {
				return err
			}
			return c.read(s)
		}
		return c.readBlock(s)
	})
}

// readBlock reads a block.
func (c *blocks) readBlock(s *scanner) error {
	b := block{inner: blocks{level: c.level + 1}}
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			b.kind, err = s.text()
		case "name":
			b.name, err = s.text()
		case "text", "thinking", "think", "title", "url", "refusal", "error":
			var text string
			text, err = s.textOrValue()
			b.text.add(text)
		case "tool_call":
			err = b.call.read(s)
		case "input":
			err = s.flatten(&b.input, "")
		case "content":
			err = b.inner.read(s)
		case "id", "uuid", "tool_use_id", "is_error", "citations", "summaries", "message", "cut_off",
			"start_timestamp", "stop_timestamp", "flags", "signature", "display_content", "context",
			"integration_name", "integration_icon_url", "icon_name", "approval_options", "approval_key",
			"is_missing", "metadata", "structured_content", "meta", "truncated", "prompt_context_metadata",
			"alternative_display_type", "hide_in_history", "is_mcp_app", "mcp_server_url", "source",
			"annotations", "logprobs", "image_url", "input_audio", "audio", "file", "image_file", "video_url", "detail",
			"file_data", "file_id", "cache_control", "tool_call_ids", "agentId", "groupId":
			err = s.skip()
		default:
			err = s.flatten(&b.unknownFields, s.repair(string(name)))
		}
		return err
	})
	if err != nil {
		return err
	}
	c.add(&b)
	return nil
}

// media are the labels of blocks without text.
var media = map[string]string{
	"image": "[image]", "image_url": "[image]", "input_image": "[image]", "image_file": "[image]",
	"input_audio": "[audio]", "audio": "[audio]", "video_url": "[video]", "file": "[file]", "input_file": "[file]",
}

// add adds the text of a block.
func (c *blocks) add(b *block) {
	c.unknown = append(c.unknown, b.inner.unknown...)
	if label := media[b.kind]; label != "" {
		c.texts.add(label)
		return
	}
	switch b.kind {
	case "text", "", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "error":
		c.spoken = c.spoken || strings.TrimSpace(b.text.String()) != ""
		c.texts.add(b.text.String())
	case "thinking", "redacted_thinking", "think":
		c.texts.labeled("thinking", b.text.String())
	case "tool_use", "server_tool_use":
		c.texts.add("[" + label("tool", b.name) + "]")
		c.texts.add(b.input.String())
	case "tool_call":
		b.call.add(&c.texts)
	case "tool_result":
		c.results = true
		c.texts.add("[" + label("result", b.name) + "]")
		c.texts.add(b.text.String())
		c.texts.add(b.inner.texts.String())
	case "knowledge", "voice_note", "web_search_result":
		c.texts.add(b.text.String())
		c.texts.add(b.inner.texts.String())
	case "token_budget", "flag":
		// Metadata for the model, not part of the dialogue.
	default:
		c.unknown = append(c.unknown, b.kind)
		var all lines
		for _, text := range []string{b.text.String(), b.input.String(), b.inner.texts.String(), b.unknownFields.String()} {
			all.add(text)
		}
		if all.String() == "" {
			all.add("[" + label("content", cut(b.kind, maxType)) + "]")
		}
		c.texts.add(all.String())
	}
}
