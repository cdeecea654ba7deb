// Package retrievalbench measures retrieval through the HTTP API. It loads
// conversations in the formats of LoCoMo and BEAM, asks every question, and compares
// the passages found with those that hold the answer:
//
//	make bench-retrieval DATA=one.json,two.json
//
// It reports recall, tokens, latency and how well scores tell answerable questions
// from others, for search by words, by meaning, and by both. Without data it runs
// small generated sets in several languages as a regression test.
package retrievalbench
