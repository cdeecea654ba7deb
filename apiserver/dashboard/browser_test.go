package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// maxWeight is the maximum size of a page with its assets, uncompressed.
const maxWeight = 100 << 10

// browser is the Chromium that the tests share.
type browser struct {
	ctx  context.Context
	axe  string
	shot string // folder of screenshots
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	axe, err := os.ReadFile(testkit.Axe(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("MNEMO_SCREENSHOTS")
	if folder == "" {
		folder = filepath.Join("..", "..", "bin", "screenshots")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testkit.Chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(patience), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 860))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
	})
	return &browser{ctx: ctx, axe: string(axe), shot: folder}
}

// tab is a browser tab with its own cookies. Errors of the console or the content
// security policy fail the test.
type tab struct {
	t       *testing.T
	browser *browser
	session cdp.BrowserContextID
	ctx     context.Context
	url     string

	mu       sync.Mutex
	expected []string // complaints that are part of the test
}

// newContext opens a tab with its own cookies.
func (b *browser) newContext(t *testing.T, url string) *tab {
	t.Helper()
	var session cdp.BrowserContextID
	err := chromedp.Run(b.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		session, err = target.CreateBrowserContext().WithDisposeOnDetach(true).Do(b.whole(ctx))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return b.newTab(t, session, url)
}

// whole returns a context for the browser instead of the tab.
func (b *browser) whole(ctx context.Context) context.Context {
	return cdp.WithExecutor(ctx, chromedp.FromContext(b.ctx).Browser)
}

// another opens another tab with the same cookies.
func (b *tab) another() *tab {
	b.t.Helper()
	return b.browser.newTab(b.t, b.session, b.url)
}

func (b *browser) newTab(t *testing.T, session cdp.BrowserContextID, url string) *tab {
	t.Helper()
	var id target.ID
	err := chromedp.Run(b.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(session).WithNewWindow(true).Do(b.whole(ctx))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id))
	tb := &tab{t: t, browser: b, session: session, ctx: ctx, url: url}
	t.Cleanup(func() {
		if t.Failed() {
			tb.failedShot()
		}
		cancel()
	})
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning || e.Entry.Source == log.SourceSecurity {
				tb.complain(e.Entry.Text + " " + e.Entry.URL)
			}
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
				tb.complain(fmt.Sprintf("console: %s", e.Args[0].Value))
			}
		case *runtime.EventExceptionThrown:
			tb.complain(e.ExceptionDetails.Error())
		}
	})
	// The first Run attaches for the lifetime of its context.
	if err := chromedp.Run(ctx, log.Enable(), emulation.SetFocusEmulationEnabled(true)); err != nil {
		t.Fatal(err)
	}
	return tb
}

// expects allows console errors that contain a text.
func (b *tab) expects(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return
		}
	}
	b.t.Errorf("the browser complains: %s", text)
}

func (b *tab) failedShot() {
	var picture []byte
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	if chromedp.Run(ctx, chromedp.FullScreenshot(&picture, 60)) == nil {
		name := "failed-" + strings.ReplaceAll(b.t.Name(), "/", "-") + ".jpg"
		_ = os.WriteFile(filepath.Join(b.browser.shot, name), picture, 0o644)
	}
}

// do runs the actions, and retries all of them if the page was being unloaded.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Run(ctx, actions...)
	for left(err) && ctx.Err() == nil {
		err = chromedp.Run(ctx, actions...)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// left reports whether a node disappeared because its page was unloaded.
func left(err error) bool {
	said, ok := errors.AsType[*cdproto.Error](err)
	return ok && strings.HasPrefix(said.Message, "Could not find node")
}

// open navigates to a page and waits for its scripts.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

// eval evaluates an expression.
func (b *tab) eval(expression string, out any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, out, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// until waits until an expression is true.
func (b *tab) until(expression, what string) {
	b.t.Helper()
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		ok := false
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		// Evaluation fails while the page is being unloaded.
		err := chromedp.Run(ctx, chromedp.Evaluate("!!("+expression+")", &ok))
		cancel()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			var text string
			_ = chromedp.Run(b.ctx, chromedp.Evaluate("location.href + '\\n' + document.body.innerText", &text))
			b.t.Fatalf("not in %s: %s (%v)\n%s", patience, what, err, text)
		}
	}
}

// sees waits until a text is visible.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.until("document.readyState === 'complete' && document.body.innerText.includes("+quote(text)+")", "see "+text)
}

// seesNot waits until a text is not visible.
func (b *tab) seesNot(text string) {
	b.t.Helper()
	b.until("document.readyState === 'complete' && !document.body.innerText.includes("+quote(text)+")", "not see "+text)
}

// at waits for a page by the prefix of its path. Pages below it do not count, unless the prefix ends with a slash: the
// previous page may be one of them.
func (b *tab) at(path string) {
	b.t.Helper()
	b.until("document.readyState === 'complete' && (location.pathname + location.search).startsWith("+quote(path)+") && location.pathname["+
		strconv.Itoa(len(path))+"] !== '/'", "be at "+path)
}

// click clicks a visible element.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.ScrollIntoView(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

// copies clicks a copy button and waits for its confirmation, which is visible for two seconds: on a busy machine, less
// than between two looks.
func (b *tab) copies(selector string) {
	b.t.Helper()
	b.eval(`{ const button = document.querySelector(`+quote(selector)+`); window.copied = false;
		new MutationObserver(() => { if (button.textContent === "Copied") window.copied = true; }).observe(button, {childList: true}); }`, nil)
	b.click(selector)
	b.until("window.copied", "see Copied")
}

// fill replaces the text of a field by typing.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Focus(selector, chromedp.ByQuery), chromedp.Evaluate("document.activeElement.select()", nil), chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// choose selects an option by its text.
func (b *tab) choose(selector, option string) {
	b.t.Helper()
	var found bool
	b.eval(`(() => { const s = document.querySelector(`+quote(selector)+`);
		const o = [...s.options].find((o) => o.text.trim() === `+quote(option)+`);
		if (o) { s.value = o.value; s.dispatchEvent(new Event("change", {bubbles: true})); s.dispatchEvent(new Event("input", {bubbles: true})); }
		return !!o; })()`, &found)
	if !found {
		b.t.Fatalf("%s has no option %s", selector, option)
	}
}

func (b *tab) signIn(u user) {
	b.t.Helper()
	b.open("/sign-in")
	b.fill("input[name=name]", u.name.String())
	b.fill("input[name=password]", u.password)
	b.click("button.primary")
	b.at("/memories")
}

// quote returns a JavaScript string literal.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always can be written
	}
	return string(text)
}
