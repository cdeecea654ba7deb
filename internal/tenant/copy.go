package tenant

// CopyReport describes a copy of a tenant to another database.
type CopyReport struct {
	Tenant     ID           `json:"tenant"`
	Name       string       `json:"name"` // namespace/name
	SourceCell DatabaseCell `json:"sourceCell"`
	TargetCell DatabaseCell `json:"targetCell"`
	// Vectors is the number of copied vectors. The others are of models that the target does not use for
	// new tenants: its servers compute them again.
	Vectors          int64         `json:"vectors"`
	VectorsToCompute int64         `json:"vectorsToCompute"`
	Jobs             int64         `json:"jobs"` // unfinished ones, which are queued in the target
	Tables           []CopiedTable `json:"tables"`
	NotCopied        []KeptTable   `json:"notCopied"`
}

// CopiedTable is a table whose rows are the same in both databases.
type CopiedTable struct {
	Table    string `json:"table"`
	Rows     int64  `json:"rows"`
	Checksum string `json:"checksum"` // of the rows, in any order
}

// KeptTable is a table whose rows belong to their database.
type KeptTable struct {
	Table  string `json:"table"`
	Reason string `json:"reason"`
}

// Rows returns the number of copied rows.
func (r CopyReport) Rows() (n int64) {
	for _, t := range r.Tables {
		n += t.Rows
	}
	return n
}
