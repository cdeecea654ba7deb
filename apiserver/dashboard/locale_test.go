package dashboard

import (
	"errors"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var (
	inEnglish = newLocale("en", catalogs["en"], nil)
	inGerman  = newLocale("de", catalogs["de"], nil)
)

func TestGermanTexts(t *testing.T) {
	t.Parallel()
	may := time.Date(2025, 5, 9, 14, 5, 0, 0, time.UTC)
	for got, want := range map[string]string{
		inGerman.text("%d memories", 1): "1 Erinnerung", inGerman.text("%d memories", 1200): "1.200 Erinnerungen", inGerman.text("%d memories", 0): "0 Erinnerungen",
		inGerman.number(-1234567): "-1.234.567", inGerman.byteSize(1536): "1,5 KiB", inGerman.byteSize(1): "1 Byte",
		inGerman.say(ago(50 * time.Hour)): "vor 2 Tagen", inGerman.say(remaining(56 * time.Second)): "noch etwa 1 Minute",
		inGerman.day(may): "9. Mai 2025", inGerman.moment(may): "9. Mai 2025, 14:05 UTC", inEnglish.moment(may): "9 May 2025, 14:05 UTC",
		string(inGerman.dayTag(may)): `<time datetime="2025-05-09T14:05:00Z">9. Mai 2025</time>`,
		inGerman.text("Import complete. %[2]d of %[1]d conversations are searchable.", 320, 250): "Import abgeschlossen. 250 von 320 Chats sind durchsuchbar.",
		inGerman.say(msg("%s of %s", msg("just now"), "x")):                                      "gerade eben von x",
		string(inGerman.markup("Sign in to <bdi>%s</bdi>", "<b>&")):                              "Bei <bdi>&lt;b&gt;&amp;</bdi> anmelden",
		inGerman.scopesLabel(tenant.AccessRead):                                                  "Nur lesen",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestErrorsInGerman: errors of the domain are recognized by their format, also those of
// fields, those with a quota and those that were stored with an import.
func TestErrorsInGerman(t *testing.T) {
	t.Parallel()
	var fields fault.Fields
	fields.Add("text", "must be at most %d bytes of UTF-8, not %d", 32768, 40000)
	fields.Add("source", "must be at most %d characters", 100)
	for want, err := range map[string]error{
		"Erinnerung nicht gefunden.": memory.ErrMemoryNotFound,
		"Text darf höchstens 32768 Bytes UTF-8 lang sein, nicht 40000; Quelle darf höchstens 100 Zeichen lang sein.":                                    fields.Err(),
		"Das Kontingent für Erinnerungen ist erschöpft (höchstens 7); löschen Sie Daten oder bitten Sie Ihren Administrator um ein höheres Kontingent.": tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: 7},
		"Die Sammlung \"Cats or dogs\" gibt es schon.": fault.New(fault.Conflict, "bucket %q already exists", "Cats or dogs"),
		"Something new.": errors.New("something new"),
	} {
		if got := inGerman.explain(err, err.Error()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := inEnglish.explain(err, err.Error()); got != sentence(err.Error()) {
			t.Errorf("in English %q, want %q", got, sentence(err.Error()))
		}
	}
	for message, want := range map[string]string{
		"a.zip: the zip is damaged or incomplete; skipped": "a.zip: das ZIP ist beschädigt oder unvollständig; übersprungen",
		"the file contains no conversations of ChatGPT, Claude or Codex; it looks like text. Request an export in the settings of your assistant, and import the file as you downloaded it.": "die Datei enthält keine Chats von ChatGPT, Claude oder Codex; sie sieht aus wie Text. Fordern Sie in den Einstellungen Ihres Assistenten einen Export an und importieren Sie die Datei, wie heruntergeladen.",
	} {
		if got := inGerman.reason(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLanguageOfARequest(t *testing.T) {
	t.Parallel()
	languages := newLanguages(nil)
	for _, tt := range []struct{ accept, cookie, want string }{
		{"", "", "en"}, {"de", "", "de"}, {"de-AT,en;q=0.5", "", "de"}, {"en-US,de;q=0.9", "", "en"}, {"fr,de;q=0.4", "", "de"}, {"fr", "", "en"},
		{"en-XA", "", "en"}, {"gsw", "", "de"}, {"en", "de", "de"}, {"de", "en", "en"}, {"de", "klingon", "de"}, {";;q=", "", "en"},
	} {
		app := fiber.New()
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		c.Request().Header.Set("Accept-Language", tt.accept)
		c.Request().Header.SetCookie(languageCookie, tt.cookie)
		if got := languages.of(c).lang; got != tt.want {
			t.Errorf("Accept-Language %q and cookie %q: %s, want %s", tt.accept, tt.cookie, got, tt.want)
		}
		app.ReleaseCtx(c)
	}
}

func TestZoneOfARequest(t *testing.T) {
	t.Parallel()
	for cookie, want := range map[string]string{"Asia/Tokyo": "Asia/Tokyo", "": "UTC", "Mars/Olympus": "UTC", "Local": "UTC"} {
		app := fiber.New()
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		c.Request().Header.SetCookie(zoneCookie, cookie)
		if got := zoneOf(c).String(); got != want {
			t.Errorf("cookie %q: %s, want %s", cookie, got, want)
		}
		app.ReleaseCtx(c)
	}
}

// A filter from a day selects from its start in the time zone of the browser.
func TestDaysOfFilters(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("", 9*3600)
	start := time.Date(2025, time.May, 8, 15, 0, 0, 0, time.UTC)
	chats, err := Filter{From: "2025-05-09", To: "2025-05-09"}.input(tokyo)
	if err != nil || !chats.From.Equal(start) || !chats.To.Equal(start.Add(24*time.Hour)) {
		t.Errorf("conversations from %v to %v, %v, want the day from %v", chats.From, chats.To, err, start)
	}
	found, err := memoryFilter{From: "2025-05-09"}.input(0, tokyo)
	if err != nil || !found.Where.Operands[0].Values[0].Time.Equal(start) {
		t.Errorf("memories: %+v, %v, want from %v", found.Where, err, start)
	}
}

// TestPagesParse: the templates of all pages are valid, also those that no other test renders.
func TestPagesParse(t *testing.T) {
	t.Parallel()
	for name, l := range New(Config{}).languages.byName {
		if len(l.pages) == 0 {
			t.Errorf("%s: no pages", name)
		}
		for page, parse := range l.pages {
			if parse().Lookup("layout") == nil {
				t.Errorf("%s, %s: no layout", name, page)
			}
		}
	}
}
