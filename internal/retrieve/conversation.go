package retrieve

import "math"

// leadDepth is the number of best messages of which one may move to the first place.
const leadDepth = 3

// bestConversationFirst moves a message to the first place if it is among the best and its
// conversation is more likely to contain the answer than those of the better ones. The weights
// were learned as those of a softmax, so the probability that a message is the answer is
// proportional to the exponential of its score, and that of a conversation to the sum of its messages.
func (c *comparison) bestConversationFirst(ranking []Hit) []Hit {
	odds := map[string]float64{}
	messages := c.messages(ranking, len(ranking))
	for _, m := range messages {
		odds[m.Owner] += oddsOf(ranking[m.index].Score)
	}
	best := 0
	for i, m := range messages[:min(leadDepth, len(messages))] {
		if odds[m.Owner] > odds[messages[best].Owner] {
			best = i
		}
	}
	if best == 0 {
		return ranking
	}
	return moveUp(ranking, messages[best].index, 0)
}

// oddsOf is the exponential of the logit of a score, which is finite also for a score of 1.
func oddsOf(p float64) float64 {
	const least = 1e-15
	return p / math.Max(1-p, least)
}
