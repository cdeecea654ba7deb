package webhook

import "github.com/mnemo-dev/mnemo/internal/fault"

// Exists refuses a webhook whose name the tenant has already.
func Exists(name string) error {
	return fault.New(fault.Conflict, "webhook %s already exists, or the tenant is deleted", name)
}

// Declared refuses to change a webhook that the Tenant declares.
func Declared(name string) error {
	return fault.New(fault.Conflict, "the Tenant declares webhook %s; change spec.webhooks instead", name)
}

// NotFound means that the tenant has no such webhook.
func NotFound(name string) error {
	return fault.New(fault.NotFound, "the tenant has no webhook %s", name)
}
