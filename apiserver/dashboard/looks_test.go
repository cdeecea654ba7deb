package dashboard_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// views are the tested viewports and color schemes.
var views = []struct {
	name          string
	width, height int64
	scheme        string
	phone         bool
}{
	{"light", 1280, 860, "light", false},
	{"dark", 1280, 860, "dark", false},
	{"phone", 390, 844, "light", true},
}

// looks checks that the page is accessible in each view, not wider than the screen,
// and small. It saves a screenshot of each view.
func (b *tab) looks(name string) {
	b.t.Helper()
	b.weighs(name)
	for _, v := range views {
		b.do(emulation.SetDeviceMetricsOverride(v.width, v.height, 1, v.phone),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: v.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			}))
		b.accessible(name + ", " + v.name)
		var width int64
		b.eval("document.scrollingElement.scrollWidth", &width)
		if width > v.width {
			b.t.Errorf("%s, %s: %d px wide, the screen has %d", name, v.name, width, v.width)
		}
		var picture []byte
		b.do(chromedp.FullScreenshot(&picture, 100))
		file := filepath.Join(b.browser.shot, name+"-"+v.name+".png")
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do(emulation.ClearDeviceMetricsOverride(), emulation.SetEmulatedMedia())
}

// weighs checks the size of the page with its assets.
func (b *tab) weighs(name string) {
	b.t.Helper()
	var weight int64
	b.eval(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
		.filter((e) => e.initiatorType !== "fetch").reduce((sum, e) => sum + e.decodedBodySize, 0)`, &weight)
	if weight == 0 || weight > maxWeight {
		b.t.Errorf("%s weighs %d bytes, want at most %d", name, weight, maxWeight)
	}
	b.t.Logf("%s weighs %.1f KiB", name, float64(weight)/1024)
}

// violation is an axe-core violation.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible fails on axe-core violations.
func (b *tab) accessible(where string) {
	b.t.Helper()
	var there bool
	if b.eval("typeof axe === 'object'", &there); !there {
		b.eval(b.browser.axe+"; true", &there)
	}
	var found []violation
	b.eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`, &found)
	for _, v := range found {
		var nodes []string
		for _, n := range v.Nodes {
			nodes = append(nodes, n.HTML+"\n    "+n.FailureSummary)
		}
		b.t.Errorf("%s: %s (%s): %s\n  %s", where, v.ID, v.Impact, v.Help, strings.Join(nodes, "\n  "))
	}
}
