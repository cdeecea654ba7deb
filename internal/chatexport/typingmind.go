package chatexport

// typingmindChat reads an element of the list "data.chats" of TypingMind's export.
type typingmindChat struct{ thread }

func openTypingMind(limits Limits, c *Conversation) reader {
	return &typingmindChat{thread{limits: limits, c: c}}
}

func (in *typingmindChat) element(s *scanner) error {
	var id string
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "chatID":
			in.c.ExternalID, err = s.text()
		case "id":
			id, err = s.text()
		case "chatTitle":
			in.c.Title, err = s.text()
		case "createdAt":
			in.c.CreatedAt, err = s.time()
		case "updatedAt":
			in.c.UpdatedAt, err = s.time()
		case "messages":
			err = s.array(func() error {
				m, err := readRoleMessage(s, &in.c.Notes)
				if err != nil {
					return err
				}
				return in.message(m)
			})
		default:
			err = s.skip()
		}
		return err
	})
	if in.c.ExternalID == "" {
		in.c.ExternalID = id
	}
	return err
}
