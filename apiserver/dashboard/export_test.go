package dashboard

import "maps"

// Pseudo is a language for tests: German with each text in marks, so that a text of a page
// without marks is not of the catalogue. Browsers are not offered it.
const Pseudo = "en-XA"

func init() {
	pseudo := catalogue{Messages: map[string]entry{}, Errors: mark(catalogues["de"].Errors), Terms: mark(catalogues["de"].Terms)}
	for key, e := range catalogues["de"].Messages {
		pseudo.Messages[key] = mark(e)
	}
	catalogues[Pseudo] = pseudo
}

func mark(texts map[string]string) map[string]string {
	out := maps.Clone(texts)
	for key, text := range out {
		out[key] = "⟦" + text + "⟧"
	}
	return out
}
