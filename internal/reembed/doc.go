// Package reembed migrates all tenants to another embedding model while they are in use.
//
// A migration is one row, and the state machine is Migrator.Run:
//
//	copying       every unit is embedded with the new model, tenant by tenant
//	canary        a share of the users is served with it
//	completing    all users are; the old vectors are deleted
//	rolling back  all users are served with the old model; the new vectors are deleted
//
// Before the canary begins and before it ends, probes compare the models. A model that
// finds less is rolled back.
package reembed
