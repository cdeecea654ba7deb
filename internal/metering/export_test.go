package metering

// Crash ends the journal without a report, as the death of the process does: the lock of its
// file is released and its content stays.
func (j *Journal) Crash() { _ = j.file.Close() }
