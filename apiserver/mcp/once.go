package mcp

import (
	"crypto/sha256"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// metaKey is where in a call's _meta its program puts a key of its choice. It
	// is no argument: an assistant would make keys up.
	metaKey = "mnemo.dev/idempotencyKey"
	// maxKey is the longest key, bytes.
	maxKey = 255
)

// requestOf names a call that its program may send again.
func requestOf(params *sdk.CallToolParamsRaw, arguments any) (tenant.Request, error) {
	given, ok := params.Meta[metaKey]
	if !ok {
		return tenant.Request{}, nil
	}
	key, ok := given.(string)
	if !ok || key == "" || len(key) > maxKey {
		return tenant.Request{}, fault.New(fault.Invalid, "_meta.%s takes a string of 1 to %d bytes", metaKey, maxKey)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return tenant.Request{}, err
	}
	return tenant.Request{Route: "mcp." + params.Name, Key: sha256.Sum256([]byte(key)), Body: sha256.Sum256(raw)}, nil
}
