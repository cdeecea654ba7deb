package retrieve

import "regexp"

const (
	// sidesDepth is the number of messages among which both sides are looked for.
	sidesDepth = 20
	// secondSide is the best index to which the lower one of both sides moves.
	secondSide = 2
)

var (
	// asksWhether matches questions whether something is so, unlike requests such as "Can you …".
	asksWhether = regexp.MustCompile(`(?i)^\W*(?:have|has|had|do|does|did|am|are|is|was|were)\b`)
	denies      = regexp.MustCompile(`(?i)\b(?:never|not|no|none|nothing|nobody|without|cannot)\b|n['’]t\b`)
	// intends matches a plan, wish, condition or question, which does not state that anything is so.
	intends = regexp.MustCompile(`(?i)['’]ll\b|\b(?:will|would|can|could|should|want\w*|going to|gonna|plan\w*|hope|hoping|try|trying|needs?|wonder\w*|might|if)\b|\?`)
)

// side is the best of the messages in which the user affirms or denies what is asked.
type side struct {
	index int // of its hit in the ranking
	about float64
}

// bothSides moves a message of the user behind a better one that says the opposite, at best to the
// third place: "I have never been to Rome" and "I flew to Rome in May". One of them alone would be
// a wrong answer to the question whether something is so. Each side is the message with the clause
// that contains most of the question's terms.
func (c *comparison) bothSides(ranking []Hit) []Hit {
	if !asksWhether.MatchString(c.query.Text) || asksYou.MatchString(c.query.Text) {
		return ranking
	}
	var affirmed, denied side
	weights := c.termWeights()
	asked := termSet(weights)
	for _, m := range c.messages(ranking, sidesDepth) {
		if !c.byUser(m) {
			continue
		}
		for _, text := range prose(m.pieces) {
			for _, clause := range clausesOf(text) {
				best := &affirmed
				if denies.MatchString(clause) {
					best = &denied
				} else if intends.MatchString(clause) {
					continue
				}
				if about := termShare(clause, asked, weights); about >= leastAbout && about > best.about {
					*best = side{m.index, about}
				}
			}
		}
	}
	if affirmed.about == 0 || denied.about == 0 {
		return ranking
	}
	from, to := max(affirmed.index, denied.index), max(secondSide, min(affirmed.index, denied.index)+1)
	if from <= to {
		return ranking
	}
	return moveUp(ranking, from, to)
}
