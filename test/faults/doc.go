// Package faults runs the whole platform under load and faults, and checks that no
// acknowledged data disappears, no deleted data reappears and no user sees data of
// others. docs/reliability.md lists the promises.
//
//	load_test.go            what users do: seeded, many users of several tenants; the
//	                        operations are in memories_test.go, merges_test.go, buckets_test.go,
//	                        chats_test.go, restores_test.go, revocations_test.go
//	history_test.go         every operation and its outcome
//	model_test.go           what the accounts must contain, according to the history
//	plan_test.go            which faults are injected when: seeded
//	faults_test.go          how each fault is injected and repaired; database_faults_test.go
//	checker_test.go         compares the model with the API and PostgreSQL,
//	                        checker_stores_test.go with Milvus and the Tenants,
//	                        checker_audit_test.go with the audit log
//	defects_test.go         builds with one planted defect each, which the checker must detect
//	overload_test.go        more requests than the servers can handle
//	hostile_test.go         inputs that are cheap to send and expensive to answer, which
//	                        are in hostile_inputs_test.go
//
// The same seed gives the same plan of faults and the same sequence of operations of
// each user; the interleaving is that of the machine.
package faults
