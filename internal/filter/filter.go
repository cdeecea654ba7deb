package filter

import "time"

// Limits of a filter.
const (
	MaxBytes      = 8192 // of its JSON
	MaxDepth      = 5    // nested AND, OR and NOT
	MaxConditions = 50
	MaxValues     = 100 // in the list of an "in"
	MaxKey        = 128 // bytes of a metadata key
)

// Filter is a node of a parsed filter. The zero Filter matches every memory.
type Filter struct {
	Op Op
	// Operands are the operands of And, Or and Not. Not matches if none of them does.
	Operands []Filter
	// Field, Key and Values belong to a condition. Key is the key of a Metadata field.
	// Values has one value, for In at least one, and for Exists a Bool.
	Field  Field
	Key    string
	Values []Value
}

// IsZero reports whether the filter matches every memory.
func (f Filter) IsZero() bool { return f.Op == "" }

// Op is the operator of a node.
type Op string

// The operators. Conditions on a missing value are false, except Ne and Exists: Ne is
// exactly the opposite of Eq.
const (
	And Op = "AND"
	Or  Op = "OR"
	Not Op = "NOT"

	Eq       Op = "eq"
	Ne       Op = "ne"
	In       Op = "in"
	Gt       Op = "gt"
	Gte      Op = "gte"
	Lt       Op = "lt"
	Lte      Op = "lte"
	Contains Op = "contains"
	Exists   Op = "exists"
)

// Field is an attribute of a memory.
type Field string

// The fields. Metadata is one value of the metadata, selected by a key.
const (
	Metadata  Field = "metadata"
	AgentID   Field = "agentId"
	RunID     Field = "runId"
	Tags      Field = "tags"
	Source    Field = "source"
	BucketID  Field = "bucketId"
	CreatedAt Field = "createdAt"
	UpdatedAt Field = "updatedAt"
)

// operators are the operators of each field. The first one is implied by a value without
// an operator.
var operators = map[Field][]Op{
	Metadata:  {Eq, Ne, In, Gt, Gte, Lt, Lte, Contains, Exists},
	AgentID:   {Eq, Ne, In, Contains, Exists},
	RunID:     {Eq, Ne, In, Contains, Exists},
	Source:    {Eq, Ne, In, Contains, Exists},
	Tags:      {Contains, In, Exists},
	BucketID:  {Eq, Ne, In},
	CreatedAt: {Eq, Ne, Gt, Gte, Lt, Lte},
	UpdatedAt: {Eq, Ne, Gt, Gte, Lt, Lte},
}

// Kind is the type of a value.
type Kind int

// The kinds of values. Values of different kinds are never equal, and comparing them is
// false.
const (
	String Kind = iota + 1
	Number
	Bool
	Time
)

// Value is the operand of a condition.
type Value struct {
	Kind Kind
	// Text is the string, the number in plain decimal notation, or "true" or "false".
	Text string
	Time time.Time // of kind Time, in microseconds
}
