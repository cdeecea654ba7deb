package dashboard

import "maps"

// Pseudo is a language for tests: German with each text in marks, so that a text of a page
// without marks is not of the catalog. Browsers are not offered it.
const Pseudo = "en-XA"

func init() {
	pseudo := messageCatalog{Messages: map[string]entry{}, Errors: mark(catalogs["de"].Errors), Terms: mark(catalogs["de"].Terms)}
	for key, e := range catalogs["de"].Messages {
		pseudo.Messages[key] = mark(e)
	}
	catalogs[Pseudo] = pseudo
}

func mark(texts map[string]string) map[string]string {
	out := maps.Clone(texts)
	for key, text := range out {
		out[key] = "⟦" + text + "⟧"
	}
	return out
}
