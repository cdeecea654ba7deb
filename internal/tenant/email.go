package tenant

import (
	"regexp"
	"unicode/utf8"
)

// emailForm is the form of an email address without quoted strings and address literals. The Tenant resource has the same.
var emailForm = regexp.MustCompile(`^[^\p{C}\p{Z}"(),.:;<>@\[-\]]+([.][^\p{C}\p{Z}"(),.:;<>@\[-\]]+)*` +
	`@[^\p{C}\p{Z}"(),.:;<>@\[-\]]+([.][^\p{C}\p{Z}"(),.:;<>@\[-\]]+)*$`)

// MaxEmail is the length limit of an email address, bytes.
const MaxEmail = 320

// IsEmail reports whether the text is an email address that can be shown as it is: it has no spaces, no control characters
// and no other invisible characters.
func IsEmail(s string) bool {
	return len(s) <= MaxEmail && utf8.ValidString(s) && emailForm.MatchString(s)
}
