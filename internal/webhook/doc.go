// Package webhook delivers the audit records of a tenant to its endpoints, signed as the
// Standard Webhooks specification says (docs/webhooks.md).
package webhook
