package textrule_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/textrule"
)

func TestInvisibleTextsAreBlank(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", " ", "\t\r\n", "\u0085", "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\u2800", "\u00ad", "\u202e", "\u2066\u2069",
		"\u115f", "\u3164", "\uffa0", "\ufe0f", "\U000e0100", "\U000e0041", "\u034f", "\u17b4", "\u180e", "\x00", " \u200b\ufeff\u2800\n",
	} {
		if !textrule.IsBlank(s) {
			t.Errorf("%+q is not blank", s)
		}
	}
	for _, s := range []string{"a", ".", "\u200ba", "株", "👩\u200d💻", "\u2801", "\u0301", "❤\ufe0f", "0", "\ue000"} {
		if textrule.IsBlank(s) {
			t.Errorf("%+q is blank", s)
		}
	}
}

func TestNamesHaveNoControls(t *testing.T) {
	t.Parallel()
	const breaks = "must not contain line breaks or control characters"
	const direction = "must not contain characters that change the direction of text"
	for s, want := range map[string]string{
		"Acme": "", "Ünï 株": "", "שלום": "", "👩\u200d💻": "", "a b": "",
		"a\nb": breaks, "a\x1b[31m": breaks, "a\u0085": breaks, "a\u2028b": breaks, "a\x00": breaks,
		"a\u202eb": direction, "\u202aa": direction, "a\u2066b\u2069": direction, "\u200fa": direction, "a\u200e": direction, "\u061ca": direction,
	} {
		if got := textrule.NameProblem(s); got != want {
			t.Errorf("%+q: %q, want %q", s, got, want)
		}
	}
}
