package dashboard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// views are the tested viewports and color schemes.
var views = []struct {
	name          string
	width, height int64
	scheme        string
	phone         bool
	visual        bool // only for looksEverywhere
}{
	{"light", 1280, 860, "light", false, false},
	{"dark", 1280, 860, "dark", false, false},
	{"phone", 390, 844, "light", true, false},
	{"phone-dark", 390, 844, "dark", true, true},
	{"wide", 1920, 1080, "light", false, true},
}

// looks checks that the page is accessible in each view, not wider than the screen,
// and small. It saves a screenshot of each view.
func (b *tab) looks(name string) {
	b.t.Helper()
	b.weighs(name)
	b.views(name, false)
}

// looksEverywhere is looks in further views.
func (b *tab) looksEverywhere(name string) {
	b.t.Helper()
	b.weighs(name)
	b.views(name, true)
}

// clipped returns the controls that are cut off at the side of the page, or whose text is,
// except in parts that scroll and texts that end with an ellipsis.
const clipped = `[...document.querySelectorAll("button, .button, input, select, textarea, summary, h1, h2, nav a")].filter((e) => {
	if (!e.checkVisibility() || e.closest("[hidden], .sr, .skip, dialog:not([open])")) return false;
	for (let p = e; p; p = p.parentElement) {
		const style = getComputedStyle(p);
		if (p !== e && (style.overflowX === "auto" || style.overflowX === "scroll") || style.textOverflow === "ellipsis" || style.clipPath !== "none") return false;
	}
	const r = e.getBoundingClientRect();
	return r.width > 1 && (r.left < -1 || r.right > innerWidth + 1 || e.matches("nav a") && r.right > e.closest("nav").getBoundingClientRect().right + 1 || e.matches("button, .button, h1, h2") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline");
}).map((e) => e.outerHTML.slice(0, 120))`

// broken returns the words of the navigation, headings, buttons and labels that continue on the
// next line, except those of users.
const broken = `[...document.querySelectorAll("nav a, button, .button, h1, h2, th, dt, label")].flatMap((e) => {
	if (!e.checkVisibility() || e.offsetWidth <= 1 || e.closest("[hidden], .sr, .skip, dialog:not([open]), [dir=auto], [translate=no]")) return [];
	const found = [], walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), range = document.createRange();
	for (let node = walk.nextNode(); node; node = walk.nextNode()) {
		if (node.parentElement.closest("bdi, code, .sr, .count, [dir=auto], [translate=no]")) continue;
		for (const word of node.data.matchAll(/[\p{L}]+/gu)) {
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push(word[0]);
		}
	}
	return found;
})`

func (b *tab) views(name string, visual bool) {
	b.t.Helper()
	for _, v := range views {
		if v.visual && !visual {
			continue
		}
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
		var cut []string
		b.eval(clipped, &cut)
		if len(cut) > 0 {
			b.t.Errorf("%s, %s: controls are cut off: %s", name, v.name, strings.Join(cut, "\n"))
		}
		var words []string
		b.eval(broken, &words)
		if len(words) > 0 {
			b.t.Errorf("%s, %s: words continue on the next line: %s", name, v.name, strings.Join(words, ", "))
		}
		picture := b.screenshot()
		file := filepath.Join(b.browser.shot, name+"-"+v.name+".png")
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do(emulation.ClearDeviceMetricsOverride(), emulation.SetEmulatedMedia())
}

// screenshot returns a picture of the whole page. Its compression is optimized for speed: a page needs 95 instead of 155 ms.
func (b *tab) screenshot() (picture []byte) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithOptimizeForSpeed(true).Do(ctx)
		return err
	}))
	return picture
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
