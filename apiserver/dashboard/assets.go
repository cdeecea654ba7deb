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

// asset is a static file. Its URL contains its version, so that browsers can cache
// it indefinitely.
type asset struct {
	content []byte
	kind    string
	version string
}

func readAssets() map[string]asset {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	out := map[string]asset{}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err) // the file is embedded
		}
		sum := sha256.Sum256(content)
		out[e.Name()] = asset{content: content, kind: kindOf(e.Name()), version: hex.EncodeToString(sum[:6])}
	}
	return out
}

// kindOf returns the media type of a file, independent of the system's MIME table.
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
