// Package events tests metering and webhooks across processes: servers are killed under
// load, and what they counted and delivered is compared with what their clients did.
package events
