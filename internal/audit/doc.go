// Package audit is the domain of the audit log: its records, the hash chain of each
// tenant, the exported file and its verification (docs/adr/0019-audit-log.md). Records
// contain ids and fingerprints, never content or secrets.
package audit
