package reference

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/gofiber/fiber/v2"
	swaggerui "github.com/swaggest/swgui/v5/static"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Path of the page.
const Path = "/docs"

// policy allows the files of this server only. Swagger UI embeds its icons as data
// URLs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// file is a file of the page.
type file struct {
	content  []byte
	kind     string
	encoding string // empty, or gzip
}

var files = map[string]file{
	"":                     read(page, "page/index.html", fiber.MIMETextHTMLCharsetUTF8),
	"reference.js":         read(page, "page/reference.js", fiber.MIMETextJavaScriptCharsetUTF8),
	"reference.css":        read(page, "page/reference.css", "text/css; charset=utf-8"),
	"swagger-ui.css":       read(swaggerui.FS, "swagger-ui.css.gz", "text/css; charset=utf-8"),
	"swagger-ui-bundle.js": read(swaggerui.FS, "swagger-ui-bundle.js.gz", fiber.MIMETextJavaScriptCharsetUTF8),
}

func read(from fs.FS, name, kind string) file {
	content, err := fs.ReadFile(from, name)
	if err != nil {
		panic(err) // the file is embedded
	}
	f := file{content: content, kind: kind}
	if strings.HasSuffix(name, ".gz") {
		f.encoding = "gzip"
	}
	return f
}

// Serve sends a file of the page; its name is the path parameter "file", empty for
// the page itself. Every browser that runs Swagger UI accepts gzip, so the scripts
// are sent as they are embedded.
func Serve(c *fiber.Ctx) error {
	f, ok := files[c.Params("file")]
	if !ok {
		return fault.New(fault.NotFound, "not found")
	}
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderContentType, f.kind)
	c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	if f.encoding != "" {
		c.Set(fiber.HeaderContentEncoding, f.encoding)
	}
	return c.Send(f.content)
}
