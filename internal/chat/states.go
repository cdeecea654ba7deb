package chat

// Status is the state of a conversation. Only active conversations are searched
// and count against the conversation quota.
type Status string

// The states of a conversation.
const (
	Active   Status = "active"
	Excluded Status = "excluded" // by its user
	Blocked  Status = "blocked"  // over the conversation quota
)

// Searched reports whether searches use the conversation: whether its units are live.
func (s Status) Searched() bool { return s == Active }

// StatusCounts are numbers of conversations by state, or differences of them.
// Excluded conversations are not counted.
type StatusCounts struct{ Active, Blocked int64 }

// Move counts a conversation that changes its state. "" stands for no
// conversation: Move("", s) counts a new one, Move(s, "") a deleted one.
func (c *StatusCounts) Move(from, to Status) {
	c.add(from, -1)
	c.add(to, 1)
}

func (c *StatusCounts) add(s Status, n int64) {
	switch s {
	case Active:
		c.Active += n
	case Blocked:
		c.Blocked += n
	case Excluded:
	}
}

// Rebalance returns the number of conversations to activate (positive) or to
// block (negative) so that the active ones match the quota, at most limit of
// them. The newest blocked conversations are activated first, and the oldest
// active ones are blocked first.
func Rebalance(active, quota int64, limit int) int {
	return int(max(int64(-limit), min(int64(limit), quota-active)))
}
