package retrievalbench

import (
	"fmt"
	"testing"
	"time"
)

// facts are statements in several languages, each with a question whose words differ
// from those of the other statements.
var facts = []struct{ language, statement, question string }{
	{"en", "My sister Ada moved to Lisbon to open a bakery.", "Where did Ada open her bakery?"},
	{"en", "The doctor found out that I am allergic to penicillin.", "Which medicine am I allergic to?"},
	{"en", "The door code of the cabin is hidden under the third flower pot.", "Where is the door code of the cabin hidden?"},
	{"de", "Mein Fahrrad steht seit Dienstag in der Werkstatt am Hafen.", "In welcher Werkstatt steht mein Fahrrad?"},
	{"de", "Die Steuererklärung habe ich dem Finanzamt in Kiel geschickt.", "Welchem Finanzamt habe ich die Steuererklärung geschickt?"},
	{"fr", "Mon voisin élève des abeilles sur le toit de l'immeuble.", "Qui élève des abeilles sur le toit ?"},
	{"fr", "Le train de nuit pour Vienne part à vingt heures.", "À quelle heure part le train de nuit pour Vienne ?"},
	{"es", "Mi abuela guarda la receta del gazpacho en una caja azul.", "¿Dónde guarda mi abuela la receta del gazpacho?"},
	{"es", "El veterinario recetó gotas para los ojos del gato.", "¿Qué recetó el veterinario para el gato?"},
	{"it", "Il violino di mio padre è stato costruito a Cremona.", "Dove è stato costruito il violino di mio padre?"},
}

// fillers surround the facts.
var fillers = []string{
	"Could you explain how a heat pump works?", "Sure, it moves heat instead of making it.", "Thanks, that was helpful.",
	"Can you shorten this paragraph?", "Here is a shorter version.", "What rhymes with orange?", "Almost nothing does.",
	"Please format this as a table.", "Done. Anything else?", "No, good night.",
}

// generated returns a set in which every fact is one message among fillers.
func generated() dataset {
	d := dataset{name: "generated", format: "generated", hash: "-"}
	h := history{id: "generated"}
	begin := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for i, f := range facts {
		c := conversation{id: fmt.Sprint("chat", i), at: begin.AddDate(0, 0, 3*i)}
		for j, filler := range fillers {
			c.add(fmt.Sprint(i, ":", j), []string{"human", "assistant"}[j%2], filler, c.at)
			if j == i%len(fillers) {
				c.add(fmt.Sprint("fact", i), "human", f.statement, c.at)
			}
		}
		h.chats = append(h.chats, c)
		h.questions = append(h.questions, question{category: f.language, text: f.question, sources: []string{fmt.Sprint("fact", i)}})
	}
	d.histories = []history{h.normalized()}
	return d
}

// checkGenerated fails if a ranking became worse on the generated set.
func checkGenerated(t *testing.T, r report) {
	t.Helper()
	limits := map[string]row{
		"lexical": {R10: 90, SessionHit1: 80},
		"dense":   {R10: 80, SessionHit1: 60},
		"fused":   {R10: 100, SessionHit1: 90},
	}
	if r.Ranking == "fused" {
		// The fillers are about general knowledge, like the off-topic questions.
		for category, want := range map[string]float64{gibberish: 90, offTopic: 35, notMentioned: 80} {
			if got := r.Extra[category+": nothing found, percent"]; got < want {
				t.Errorf("nothing is found for %.0f %% of the questions that are %s, want at least %.0f %%", got, category, want)
			}
		}
		if got := r.Extra["answerable: evidence of the first ten lost, percent"]; got > 0 {
			t.Errorf("%.0f %% of the facts are not relevant", got)
		}
	}
	if want := limits[r.Ranking]; r.All.R10 < want.R10 || r.All.SessionHit1 < want.SessionHit1 {
		t.Errorf("%s: recall@10 %.0f and session Hit@1 %.0f, want at least %.0f and %.0f", r.Ranking, r.All.R10, r.All.SessionHit1, want.R10, want.SessionHit1)
	}
}
