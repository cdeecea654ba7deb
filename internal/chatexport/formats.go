package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// The supported platforms, as in chat.Upsert.Platform.
const (
	ChatGPT    = "chatgpt"
	Claude     = "claude"
	Gemini     = "gemini"
	Grok       = "grok"
	DeepSeek   = "deepseek"
	Perplexity = "perplexity"
	Copilot    = "copilot"
	TypingMind = "typingmind"
	ClaudeCode = "claude-code"
	Codex      = "codex"
	LibreChat  = "librechat"
	OpenWebUI  = "openwebui"
	OpenAI     = "openai-messages" // "openai" is another name of ChatGPT in recalls
)

// format is the export format of a platform. A platform may have several.
type format struct {
	platform string // value of the API
	name     string // for end users
	// signs identify a JSON value of the format: it has all members of one of the
	// sets. "name{", `name"` and "name[" are members that are an object, a text and a
	// list; "list.name" is a member of the first element of a list; "member=word" is a
	// text with that word.
	signs [][]string
	open  func(limits Limits, c *Conversation) reader
	// joins reports whether two consecutive values belong to one conversation; nil
	// if each value is a conversation.
	joins func(last, next head) bool
	// nested means that messages contain their answers, as deep as the dialogue is long.
	nested bool
	// untitled means that the platform has no titles: the first question is used.
	untitled bool
}

// reader reads a conversation: the values that it consists of, and then finish.
type reader interface {
	element(s *scanner) error
	finish() error
}

// formats lists all formats. The first one with a matching sign is used.
var formats = []*format{
	{platform: DeepSeek, name: "DeepSeek", open: openDeepSeek,
		signs: [][]string{{"mapping{", `inserted_at"`}}},
	{platform: ChatGPT, name: "ChatGPT", open: openChatGPT,
		signs: [][]string{{"mapping{"}}},
	{platform: Claude, name: "Claude", open: openClaude,
		signs: [][]string{{"chat_messages["}}},
	{platform: Gemini, name: "Gemini", open: openGemini, joins: closeInTime, untitled: true,
		signs: [][]string{{"header=Gemini", `title"`}}},
	{platform: Grok, name: "Grok", open: openGrok,
		signs: [][]string{{"conversation{", "responses["}}},
	{platform: Perplexity, name: "Perplexity", open: openPerplexity,
		signs: [][]string{{`entries.query"`}, {`entries.query_str"`}, {`context_title"`, "entries["}}},
	{platform: Copilot, name: "Copilot", open: openCopilot, joins: sameTitle,
		signs: [][]string{{`Conversation"`, `Time"`, `Author"`, `Message"`}, {`ChatName"`, `CreatedAt"`, `Author"`, `MessageContent"`}}},
	{platform: LibreChat, name: "LibreChat", open: openLibreChat, nested: true,
		signs: [][]string{{`conversationId"`, "messages["}, {`conversationId"`, "messagesTree["}}},
	{platform: OpenWebUI, name: "Open WebUI", open: openOpenWebUI,
		signs: [][]string{{"chat.history{"}, {"chat.messages["}, {"history{", "messages["}}},
	{platform: TypingMind, name: "TypingMind", open: openTypingMind,
		signs: [][]string{{`chatID"`, "messages["}, {`chatTitle"`, "messages["}}},
	{platform: ClaudeCode, name: "Claude Code", open: openClaudeCode, joins: wholeFile, untitled: true,
		signs: [][]string{{`sessionId"`, `uuid"`, "message{"}, {`leafUuid"`, `summary"`}, {`messageId"`, "snapshot{"}, {`sessionId"`, `operation"`}}},
	{platform: Codex, name: "Codex", open: openCodex, joins: wholeFile, untitled: true,
		signs: [][]string{{"payload{", `type"`, `timestamp"`}, {`payload.id"`, `payload.timestamp"`, `type"`}, {`id"`, `timestamp"`, "git{"}}},
	{platform: OpenAI, name: "OpenAI messages", open: openOpenAI, untitled: true,
		signs: [][]string{{`messages.role"`}}},
	{platform: OpenAI, name: "OpenAI messages", open: openMessages, joins: wholeFile, untitled: true,
		signs: [][]string{{`role"`, `content"`}, {`role"`, "content["}, {`role"`, "tool_calls["}}},
}

// wholeFile joins all values of a file into one conversation.
func wholeFile(head, head) bool { return true }

// Platforms lists the supported platforms, the most common first.
var Platforms = []string{
	ChatGPT, Claude, Gemini, Grok, DeepSeek, Perplexity, Copilot, TypingMind, ClaudeCode, Codex, LibreChat, OpenWebUI, OpenAI,
}

// PlatformName returns the display name of a platform, "" for an unknown one.
func PlatformName(platform string) string {
	if f := formatOf(platform); f != nil {
		return f.name
	}
	return ""
}

// CheckPlatform returns an Invalid error for an unknown platform. "" is valid.
func CheckPlatform(platform string) error {
	if platform == "" || formatOf(platform) != nil {
		return nil
	}
	return fault.New(fault.Invalid, "platform must be one of %s", strings.Join(Platforms, ", "))
}

// formatOf returns the first format of a platform, or nil.
func formatOf(platform string) *format {
	for _, f := range formats {
		if f.platform == platform {
			return f
		}
	}
	return nil
}

// PlatformNames returns the display names of all platforms as an enumeration with
// "and" or "or" before the last one.
func PlatformNames(conjunction string) string {
	out := make([]string, len(Platforms))
	for i, p := range Platforms {
		out[i] = PlatformName(p)
	}
	last := len(out) - 1
	return strings.Join(out[:last], ", ") + " " + conjunction + " " + out[last]
}

// signs is a set of signs.
type signs uint64

// signBits numbers the signs of all formats.
var signBits = make(map[string]signs)

// detections are the formats with their sets of signs, in the order of formats.
var detections = func() (out []detection) {
	for _, f := range formats {
		for _, set := range f.signs {
			d := detection{format: f}
			for _, sign := range set {
				if signBits[sign] == 0 {
					signBits[sign] = 1 << len(signBits)
				}
				d.signs |= signBits[sign]
			}
			out = append(out, d)
		}
	}
	return out
}()

type detection struct {
	format *format
	signs  signs
}

// detect returns the format of a value with the signs, or nil. It is of the
// platform unless that is "".
func detect(found signs, platform string) *format {
	for _, d := range detections {
		if found&d.signs == d.signs && (platform == "" || d.format.platform == platform) {
			return d.format
		}
	}
	return nil
}
