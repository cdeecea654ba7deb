// Package metering counts what tenants are billed for (docs/metering.md): it counts requests
// in files that survive a crash of the process, and writes the usage of a day as CloudEvents.
// What is stored and embedded is counted by the store, in the transaction of the change.
package metering
