// Package texts collects the texts that people read (errors, conditions, logs,
// help, API and page texts, alerts) into one golden file for review, and finds
// unidiomatic phrases in them, in documents and in comments of Go and SQL.
// After changing a text, run:
//
//	go test ./test/texts -update
package texts
