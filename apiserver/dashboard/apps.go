package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net"
	"net/netip"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// placeholder stands for the token in the settings of apps until the user creates one.
const placeholder = "YOUR_TOKEN"

// appsView is Connect → Apps: the settings of each app.
type appsView struct {
	URL   string
	Token string // in the settings: the new one, or the placeholder
	New   string // a new token, shown only once
	Name  string // of the new token
	Form  tokenForm
	// Address is the MCP URL for OAuth clients, which need no token; "" if OAuth is
	// disabled.
	Address string
	// Local means that only apps on this computer reach the server.
	Local bool
	// Cursor and Code are links that install the server in an app; "" without a token that
	// they could contain and without OAuth.
	Cursor, Code   template.URL
	Scopes, Expiry []choice
}

func (d *Dashboard) showApps(c *fiber.Ctx, who *tenant.Session) error {
	return d.renderApps(c, who, fiber.StatusOK, appsView{Form: newTokenForm()})
}

// renderApps completes the view and renders it.
func (d *Dashboard) renderApps(c *fiber.Ctx, who *tenant.Session, status int, view appsView) error {
	view.URL, view.Address, view.Local = origin(c), d.address(), isLoopback(hostOf(c))
	view.Scopes, view.Expiry = tokenScopes, tokenLives
	view.Token = placeholder
	if view.New != "" {
		view.Token = view.New
	}
	if err := view.installLinks(); err != nil {
		return err
	}
	return d.render(c, status, "apps", page{Title: msg("Apps"), Section: "connect", Who: who, Data: view})
}

// installLinks sets the links: with the new token, or without any if the app can ask for
// access.
func (v *appsView) installLinks() error {
	if v.New == "" && v.Address == "" {
		return nil
	}
	server := map[string]any{"type": "http", "url": v.URL + "/mcp"}
	if v.New != "" {
		server["headers"] = map[string]string{"Authorization": "Bearer " + v.New}
	} else {
		server["url"] = v.Address
	}
	config, err := json.Marshal(server)
	if err != nil {
		return err
	}
	v.Cursor = template.URL("cursor://anysphere.cursor-deeplink/mcp/install?name=mnemo&config=" + url.QueryEscape(base64.StdEncoding.EncodeToString(config))) //nolint:gosec // built here, escaped
	server["name"] = "mnemo"
	if config, err = json.Marshal(server); err != nil {
		return err
	}
	v.Code = template.URL("vscode:mcp/install?" + url.PathEscape(string(config))) //nolint:gosec // built here, escaped
	return nil
}

// isLoopback reports whether a host, with or without a port, is this computer.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback()
}
