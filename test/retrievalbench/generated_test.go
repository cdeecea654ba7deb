package retrievalbench

import (
	"fmt"
	"testing"
	"time"
)

// fact is a statement with a question whose words differ from those of the other
// statements.
type fact struct{ language, statement, question string }

var europeanFacts = []fact{
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

// asianFacts are in languages that do not separate words by spaces, or attach particles to
// them. At least one of each language is less relevant than the threshold if none of the
// question's terms is found in it.
var asianFacts = []fact{
	{"ja", "富士山の山小屋を八月の第一土曜日に予約した。", "富士山の山小屋をいつ予約しましたか？"},
	{"ja", "祖母の形見の指輪は机の引き出しにしまってある。", "祖母の形見の指輪はどこにしまってありますか？"},
	{"ja", "妹は京都の大学で日本文学を勉強している。", "妹はどこの大学で日本文学を勉強していますか？"},
	{"zh", "医生说我对花生过敏，不能吃沙嗲酱。", "医生说我对什么过敏，不能吃什么？"},
	{"zh", "我把备用钥匙放在花园的蓝色花盆下面。", "我把备用钥匙放在哪里？"},
	{"zh", "邻居在屋顶上养蜜蜂。", "谁在屋顶上养蜜蜂？"},
	{"ko", "어머니의 생일 케이크는 동네 빵집에서 주문했다.", "어머니 생일에 케이크를 어디에서 주문했나요?"},
	{"ko", "아버지의 바이올린은 대전 공방에서 수리하고 있다.", "아버지의 바이올린은 어느 공방에서 수리하고 있나요?"},
	{"ko", "자전거는 지하실에 세워 두었다.", "자전거는 어디에 세워 두었나요?"},
}

// fillers surround the facts.
var fillers = []string{
	"Could you explain how a heat pump works?", "Sure, it moves heat instead of making it.", "Thanks, that was helpful.",
	"Can you shorten this paragraph?", "Here is a shorter version.", "What rhymes with orange?", "Almost nothing does.",
	"Please format this as a table.", "Done. Anything else?", "No, good night.",
}

func generated() []dataset {
	return []dataset{generate("generated (European)", europeanFacts), generate("generated (Japanese, Chinese, Korean)", asianFacts)}
}

// generate returns a set in which every fact is one message among fillers.
func generate(name string, facts []fact) dataset {
	d := dataset{name: name, format: "generated", hash: "-"}
	h := history{id: name}
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

// checkGenerated fails if a ranking became worse on a generated set.
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
				t.Errorf("%s: nothing is found for %.0f %% of the questions that are %s, want at least %.0f %%", r.Dataset, got, category, want)
			}
		}
		if got := r.Extra["answerable: evidence of the first ten lost, percent"]; got > 0 {
			t.Errorf("%s: %.0f %% of the facts are not relevant", r.Dataset, got)
		}
	}
	if want := limits[r.Ranking]; r.All.R10 < want.R10 || r.All.SessionHit1 < want.SessionHit1 {
		t.Errorf("%s, %s: recall@10 %.0f and session Hit@1 %.0f, want at least %.0f and %.0f", r.Dataset, r.Ranking, r.All.R10, r.All.SessionHit1, want.R10, want.SessionHit1)
	}
}
