package retrieve

import (
	"math"
	"regexp"
)

// Features of a candidate, in the order of the weights in weights.json. Those called
// standard are in standard deviations from the mean of all candidates.
const (
	featMeaning      = iota // standard: cosine with the question as its speaker would put it
	featBefore              // standard: the best such cosine of the message before
	featAfter               // standard: and of the message after
	featLexical             // standard: score of the lexical search, which includes neighbors
	featLexicalShort        // the same times shortness
	featWords               // standard: BM25 of the piece alone
	featWordsShort          // the same times shortness
	featSpeaker             // 1 if the question names the speaker, -1 if it names another one
	featHuman               // 1 for a message of the user
	featMe                  // 1 for a message of the user if the question is about the user
	featYou                 // 1 for an answer if the question is about what the assistant said
	featWhen                // number of time expressions, at most 2, if the question asks for a time
	featMonth               // 1 if written in the month or time that the question names
	featDay                 // 1 if written within three days of the day that the question names
	featQuestion            // 1 if it ends with a question mark
	featCentred             // standard: cosine with the question after subtracting the mean of the candidates
	featAddressed           // number of "you" and "your", at most 2
	featExclaims            // 1 if a sentence ends with an exclamation mark
	featNear                // standard: the better first score of the messages before and after
	featureCount
)

// features is the vector of a candidate.
type features [featureCount]float64

// score is the inner product of features and weights.
func (f features) score(weights features) (sum float64) {
	for i, w := range weights {
		sum += w * f[i]
	}
	return sum
}

var (
	asksMe   = regexp.MustCompile(`(?i)\b(?:i|my|i['’](?:m|ve)|me|mine)\b`)
	asksYou  = regexp.MustCompile(`(?i)\b(?:did|have|had|were) you\b|\byou (?:recommend|suggest|advis|said|say|explain|told|tell|give|gave)|\byour (?:recommend|suggest|advice|explan|answer)`)
	asksWhen = regexp.MustCompile(`(?i)\b(?:when|what (?:date|day|month|year|time)|how long|which (?:year|month|day))\b`)
)

// shortness is 1 for a few words and falls toward 0. Short messages depend on the
// words of their neighbors.
func shortness(words int) float64 { return min(1, 40/(float64(words)+20)) }

// standardize replaces a feature by standard deviations from its mean.
func standardize(list []features, feature int) {
	n, mean, variance := float64(len(list)), 0.0, 0.0
	for _, f := range list {
		mean += f[feature] / n
	}
	for _, f := range list {
		variance += (f[feature] - mean) * (f[feature] - mean) / n
	}
	deviation := max(math.Sqrt(variance), 1e-9)
	for i := range list {
		list[i][feature] = (list[i][feature] - mean) / deviation
	}
}
