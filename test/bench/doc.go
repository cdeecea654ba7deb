// Package bench measures Mnemo beside the calls it consists of and beside other software:
//
//	make bench
//
// It starts `mnemo serve` with PostgreSQL, Milvus and the local model, and does each operation in turn with Mnemo
// through HTTP, with raw calls (pgx, the Milvus SDK, the embedder, an empty Fiber handler), with mem0 and with
// LangGraph's PostgreSQL store, on the same texts, stores and model. Operations alternate, so that a slow minute of
// the machine affects all of them, and results are ratios of medians. A short run without other software
// is part of `make test`: it checks the answers, not the times.
//
//	make bench MIX=1 N=2000
//
// It measures a mix of operations of 1,000 users in 50 tenants, each with 200 to 5,000 memories and messages, whose activity follows
// Zipf's law: 35 % searches of memories, 35 % of chats, 15 % creations, 10 % listings and 5 % deletions, with one client and with
// eight. The server restarts before each round, so that its caches are cold. N is the number of operations in a round.
//
//	make bench-scale CURVE=units LIMIT=20000
//
// It measures the same operations at growing sizes: units of a user, tenants, users of a tenant, clients, and writers of one
// or of many tenants. One generator with a seed loads the rows directly; the index is written by the product. Points of a curve
// alternate, and a ratio is the median of five rounds. docs/scale.md has the results.
package bench
