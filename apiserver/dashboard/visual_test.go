package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// awkward are texts that are long without spaces, in scripts without spaces, and from right
// to left.
var awkward = []string{
	"https://intranet.globex.test/" + strings.Repeat("a-very-long-path/", 12) + "index.html",
	"明日の午前九時に東京駅の丸の内中央口で田中さんと会う。新幹線の座席は窓側がいい。",
	"下个季度的路线图：先完成搜索，再做导入，最后是权限管理。",
	"أفضل المقعد بجانب النافذة في القطار إلى فيينا، ويفضل أن يكون في عربة هادئة.",
	"אני מעדיף מושב ליד החלון ברכבת.",
	strings.Repeat("Donaudampfschifffahrtsgesellschaftskapitän", 4),
	"👩🏽‍🚀 Zoë’s naïve façade — “quotes”, <b>tags</b> & {\"json\": true}",
}

// looksRight: pages with awkward texts, with many rows, without any, and with errors have
// no horizontal scrolling, no cut-off controls and no accessibility violations, in every
// view.
func looksRight(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) {
		spec.DisplayName, spec.Quota.Memories = "株式会社"+strings.Repeat("Globex", 12), int64(len(awkward))
	}, "alice")[0]
	s.store(t, alice, awkward...)
	for i, text := range awkward {
		s.ingest(t, alice, text[:8], []string{text, ""}[i%2], text, "## "+text+"\n\n- "+text+"\n\n```\n"+text+"\n```\n\n| a | b |\n|---|---|\n| "+text+" | x |")
	}
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.signIn(alice)
	tab.open("/buckets/new")
	tab.fill("input[name=name]", strings.Repeat("Wochenendbeziehungen", 5))
	tab.click("form.stack button.primary")
	tab.sees("This bucket is empty")
	tab.looksEverywhere("visual-bucket-empty")
	tab.fill("#text", "One memory too many")
	tab.click("#add button.primary")
	tab.sees("quota")
	tab.looksEverywhere("visual-memories-error")
	tab.open("/memories")
	tab.click("[data-row] input[name=id]")
	tab.looksEverywhere("visual-memories")
	tab.click("[data-row]:nth-child(4) .text")
	tab.at("/memories/")
	tab.looksEverywhere("visual-memory")
	for name, path := range map[string]string{
		"search": "/search?q=%E6%9D%B1%E4%BA%AC", "ask": "/ask?q=" + strings.Repeat("Donau", 20), "chats": "/chats", "imports": "/chats/imports",
		"usage": "/usage", "activity": "/activity", "privacy": "/privacy", "nothing": "/nowhere", "apps": "/connect/apps",
	} {
		tab.open(path)
		tab.looksEverywhere("visual-" + name)
	}
	tab.open("/search?q=%E6%9D%B1%E4%BA%AC")
	tab.until(`[...document.querySelectorAll("mark")].some((m) => m.innerText === "東京")`, "see the match in Japanese")
	tab.open("/chats")
	tab.click(".card:nth-child(4) .title")
	tab.at("/chats/")
	tab.looksEverywhere("visual-conversation")
}

// changesTheme: the theme and the format of dates follow the system and the browser until
// the user chooses a theme, which the server renders; the shortcuts are listed and work.
func changesTheme(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.store(t, alice, memories...)
	tab := b.newContext(t, s.urls[0])
	tab.do(emulation.SetLocaleOverride().WithLocale("en-GB"), emulation.SetTimezoneOverride("Asia/Tokyo"))
	tab.signIn(alice)
	tab.sees("9 May 2025")
	for _, theme := range []string{"Light theme", "Dark theme"} {
		tab.click(".rail [data-theme-switch]")
		tab.sees(theme)
	}
	tab.open("/usage")
	tab.until(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).backgroundColor === "rgb(19, 22, 24)"`, "see a dark page")
	tab.click(".rail [data-theme-switch]")
	tab.sees("System theme")
	tab.open("/memories")
	tab.until(`!document.documentElement.dataset.theme`, "see the theme of the system")

	tab.do(chromedp.Evaluate("document.activeElement.blur()", nil), chromedp.KeyEvent("?"))
	tab.sees("Keyboard shortcuts")
	tab.looks("shortcuts")
	tab.do(chromedp.KeyEvent(kb.Escape))
	tab.seesNot("Keyboard shortcuts")
	tab.click("[data-row]:nth-child(2) input")
	tab.do(input.DispatchKeyEvent(input.KeyDown).WithModifiers(input.ModifierShift).WithKey("Shift"))
	tab.eval(`document.querySelector("[data-row]:nth-child(4) input").dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, shiftKey: true}))`, nil)
	tab.sees("3 memories selected")
	tab.click("button[formaction='/memories/move']")
	tab.until("document.activeElement.name === 'to' && document.activeElement.value === ''", "be asked for the bucket")
	tab.do(chromedp.Focus("#text", chromedp.ByQuery), chromedp.KeyEvent("Saved by keys."),
		input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithCode("Enter").WithModifiers(input.ModifierCtrl))
	tab.sees("Saved by keys.")
	tab.sees("Memory saved.")
	tab.until("document.activeElement.id === 'text'", "go on writing")
	tab.do(emulation.SetDeviceMetricsOverride(390, 844, 1, true))
	tab.until("document.querySelector('.compose').checkVisibility()", "see the form")
	tab.fill("main [data-search]", "trains")
	tab.until("!document.querySelector('.compose').checkVisibility()", "see only results while searching on a phone")
}
