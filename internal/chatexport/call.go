package chatexport

import "strings"

// call is a tool call with its input and, in some exports, its output.
type call struct {
	name   string
	input  lines
	output lines
}

// read reads a call: {name, args, output}, or {function: {name, arguments}}.
func (c *call) read(s *scanner) error {
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "function", "custom":
			err = c.read(s)
		case "name":
			c.name, err = s.text()
		case "args", "arguments", "input":
			err = s.flatten(&c.input, "")
		case "output":
			err = s.flatten(&c.output, "")
		default:
			err = s.skip()
		}
		return err
	})
}

// add adds the texts of the call.
func (c *call) add(out *lines) {
	if c.name == "" && c.input.String() == "" && c.output.String() == "" {
		return
	}
	out.add("[" + label("tool", c.name) + "]")
	out.add(c.input.String())
	if strings.TrimSpace(c.output.String()) != "" {
		out.add("[" + label("result", c.name) + "]")
		out.add(c.output.String())
	}
}
