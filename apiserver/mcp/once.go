package mcp

import (
	"crypto/sha256"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// metaKey is the member of _meta with the client's idempotency key. It is not
	// an argument, because an assistant would invent keys.
	metaKey = "mnemo.dev/idempotencyKey"
	// maxKey is the length limit of a key, bytes.
	maxKey = 255
)

// requestOf returns the idempotency record of a call.
func requestOf(params *sdk.CallToolParamsRaw, arguments any) (tenant.Request, error) {
	value, ok := params.Meta[metaKey]
	if !ok {
		return tenant.Request{}, nil
	}
	key, ok := value.(string)
	if !ok || key == "" || len(key) > maxKey {
		return tenant.Request{}, fault.New(fault.Invalid, "_meta.%s must be a string of 1 to %d bytes", metaKey, maxKey)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return tenant.Request{}, err
	}
	return tenant.Request{Route: "mcp." + params.Name, Key: sha256.Sum256([]byte(key)), Body: sha256.Sum256(raw)}, nil
}
