package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"path"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

//go:embed assets/*
var assetFiles embed.FS

// asset is a file that pages use. Its address holds its version, so that
// browsers may keep it for good.
type asset struct {
	content []byte
	kind    string
	version string
}

func readAssets() map[string]asset {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	out := map[string]asset{}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err) // likewise
		}
		sum := sha256.Sum256(content)
		out[e.Name()] = asset{content: content, kind: kindOf(e.Name()), version: hex.EncodeToString(sum[:6])}
	}
	return out
}

// kindOf does not ask the machine's own table, which may not have them.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (d *Dashboard) serveAsset(c *fiber.Ctx) error {
	a, ok := d.assets[c.Params("name")]
	if !ok {
		return fault.New(fault.NotFound, "not found")
	}
	if c.Query("v") == a.version {
		c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	}
	c.Set(fiber.HeaderContentType, a.kind)
	return c.Send(a.content)
}
