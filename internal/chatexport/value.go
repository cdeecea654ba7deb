package chatexport

import (
	"strconv"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// object reads an object: it calls member after each name to consume the value.
// The name is valid until then. Any other value is skipped like an empty object,
// so that an unexpected field does not fail the conversation.
func (s *scanner) object(member func(name []byte) error) error {
	return s.members('{', '}', func() error {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c != '"' {
			return errSyntax
		}
		name, err := s.bytes()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// array reads an array: it calls element to consume each element. Any other value
// is skipped.
func (s *scanner) array(element func() error) error {
	return s.members('[', ']', element)
}

func (s *scanner) members(opening, closing byte, each func() error) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != opening {
		return s.skip()
	}
	if err := s.open(); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := s.peek()
		switch {
		case err != nil:
			return err
		case c == closing:
			s.close()
			return nil
		case !first && c != ',':
			return errSyntax
		case !first:
			s.pos++
		}
		if err := each(); err != nil {
			return err
		}
	}
}

// is reports whether the next value starts with the byte.
func (s *scanner) is(opening byte) (bool, error) {
	c, err := s.peek()
	return c == opening, err
}

// textOrValue consumes a text, or an object with the text in "value".
func (s *scanner) textOrValue() (text string, err error) {
	if object, err := s.is('{'); err != nil || !object {
		if err != nil {
			return "", err
		}
		return s.text()
	}
	err = s.object(func(name []byte) (err error) {
		if string(name) != "value" {
			return s.skip()
		}
		text, err = s.text()
		return err
	})
	return text, err
}

// flag consumes a value and reports whether it is true.
func (s *scanner) flag() (bool, error) {
	if yes, err := s.is('t'); err != nil || !yes {
		if err != nil {
			return false, err
		}
		return false, s.skip()
	}
	_, err := s.literal()
	return true, err
}

// zero consumes a value and reports whether it is the number 0.
func (s *scanner) zero() (bool, error) {
	c, err := s.peek()
	if err != nil {
		return false, err
	}
	if c != '-' && (c < '0' || c > '9') {
		return false, s.skip()
	}
	lit, err := s.literal()
	if err != nil {
		return false, err
	}
	f, err := strconv.ParseFloat(string(lit), 64)
	return err == nil && f == 0, nil
}

// time consumes a time: seconds since 1970, with an optional fraction, or ISO
// 8601. Anything else, such as null, is the zero time.
func (s *scanner) time() (time.Time, error) {
	c, err := s.peek()
	if err != nil {
		return time.Time{}, err
	}
	switch {
	case c == '"':
		text, err := s.text()
		if err != nil {
			return time.Time{}, err
		}
		if t, _, err := chat.ParseTime(text, time.UTC); err == nil {
			return t.UTC(), nil
		}
		return seconds(text), nil
	case c == '-' || c >= '0' && c <= '9':
		lit, err := s.literal()
		return seconds(string(lit)), err
	}
	return time.Time{}, s.skip()
}

// known returns a time of an export, zero if it is out of range.
func known(t time.Time) time.Time {
	t, err := chat.StoredTime(t)
	if err != nil {
		return time.Time{}
	}
	return t
}

// seconds parses seconds since 1970 to the microsecond, or milliseconds if the
// value as seconds is after the year 5000.
func seconds(text string) time.Time {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) {
		return time.Time{}
	}
	if f > 1e11 {
		f /= 1000
	}
	if f > 1e11 {
		return time.Time{}
	}
	whole := int64(f)
	return time.Unix(whole, int64((f-float64(whole))*1e6+0.5)*1000).UTC()
}
