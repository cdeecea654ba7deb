package fault

import (
	"fmt"
	"strings"
)

// Fields collects what is wrong with an input, so that one answer names every
// field. The zero value is ready.
type Fields struct{ problems []string }

// Add notes that a field is wrong and what it takes, for example
// Add("count", "must be at least 1, not %d", n).
func (f *Fields) Add(field, format string, args ...any) {
	f.problems = append(f.problems, field+" "+fmt.Sprintf(format, args...))
}

// Err returns nil when nothing was added, else one Invalid error of all of it.
func (f *Fields) Err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return New(Invalid, "%s", strings.Join(f.problems, "; "))
}
