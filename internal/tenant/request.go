package tenant

// Request names a write that its client may send again without knowing whether
// the first sending arrived: a store does it once within 24 hours and answers
// the same again. It is the user's, and the zero Request names none.
type Request struct {
	Route string // what is asked for, such as "memory"
	Key   Hash   // of the key the client chose
	Body  Hash   // of what it sent: another body under the same key is a Conflict
}
