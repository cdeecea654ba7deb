package chatexport

// claudeContent is the content of a message: blocks of text, reasoning, tool calls
// and tool results.
type claudeContent struct {
	level   int // nesting level
	texts   lines
	unknown []string
}

// claudeBlock is a block of any type.
type claudeBlock struct {
	kind, name string
	text       lines // its own texts
	input      lines // input of a tool call
	inner      claudeContent
	rest       lines // texts of unknown fields
}

// maxLevel is the maximum nesting of blocks; each level copies its text.
const maxLevel = 4

// read reads the blocks; a plain string is one block of text.
func (c *claudeContent) read(s *scanner) error {
	if c.level > maxLevel {
		return s.flatten(&c.texts, "")
	}
	quoted, err := s.is('"')
	if err != nil {
		return err
	}
	if quoted {
		text, err := s.text()
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
func (c *claudeContent) readBlock(s *scanner) error {
	b := claudeBlock{inner: claudeContent{level: c.level + 1}}
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			b.kind, err = s.text()
		case "name":
			b.name, err = s.text()
		case "text", "thinking", "title", "url":
			var text string
			text, err = s.text()
			b.text.add(text)
		case "input":
			err = s.flatten(&b.input, "")
		case "content":
			err = b.inner.read(s)
		case "id", "uuid", "tool_use_id", "is_error", "citations", "summaries", "message", "cut_off",
			"start_timestamp", "stop_timestamp", "flags", "signature", "display_content", "context",
			"integration_name", "integration_icon_url", "icon_name", "approval_options", "approval_key",
			"is_missing", "metadata", "structured_content", "meta", "truncated", "prompt_context_metadata",
			"alternative_display_type", "hide_in_history", "is_mcp_app", "mcp_server_url", "source":
			err = s.skip()
		default:
			err = s.flatten(&b.rest, s.repair(string(name)))
		}
		return err
	})
	if err != nil {
		return err
	}
	c.add(&b)
	return nil
}

// add adds the text of a block.
func (c *claudeContent) add(b *claudeBlock) {
	c.unknown = append(c.unknown, b.inner.unknown...)
	switch b.kind {
	case "text", "":
		c.texts.add(b.text.String())
	case "thinking", "redacted_thinking":
		c.texts.labelled("thinking", b.text.String())
	case "tool_use", "server_tool_use":
		c.texts.add("[" + label("tool", b.name) + "]")
		c.texts.add(b.input.String())
	case "tool_result":
		c.texts.add("[" + label("result", b.name) + "]")
		c.texts.add(b.text.String())
		c.texts.add(b.inner.texts.String())
	case "knowledge", "voice_note", "web_search_result":
		c.texts.add(b.text.String())
		c.texts.add(b.inner.texts.String())
	case "image":
		c.texts.add("[image]")
	case "token_budget", "flag":
		// Metadata for the model, not part of the dialogue.
	default:
		c.unknown = append(c.unknown, b.kind)
		var all lines
		for _, text := range []string{b.text.String(), b.input.String(), b.inner.texts.String(), b.rest.String()} {
			all.add(text)
		}
		if all.String() == "" {
			all.add("[" + label("content", cut(b.kind, maxType)) + "]")
		}
		c.texts.add(all.String())
	}
}
