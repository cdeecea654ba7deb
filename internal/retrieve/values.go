package retrieve

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// monthNames are the months but May, which is more often a verb.
const monthNames = `january|february|march|april|june|july|august|september|october|november|december`

var (
	// valueForm is a number, weekday or date of a short statement.
	valueForm = newForm(`(?i)\b(?:(?:`+monthNames+`|may)\b(?: \d{1,2}\b)?|`+
		`\d[\d,.:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:mon|tues|wednes|thurs|fri|satur|sun)day)`,
		slices.Concat(strings.Split(monthNames, "|"), strings.Split("0123456789", ""), []string{"may", "one", "two", "three", "four", "five", "six",
			"seven", "eight", "nine", "ten", "eleven", "twelve", "day"})...)

	asksDate   = regexp.MustCompile(`(?i)\b(?:when|(?:what|which) (?:date|day|month))\b`)
	asksNumber = regexp.MustCompile(`(?i)\bhow (?:many|much)\b`)
	dateValue  = regexp.MustCompile(`(?i)\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}(?:/\d{2,4})?|` +
		`\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:` + monthNames + `|may)\b|(?:` + monthNames + `|may) (?:the )?\d{1,2}(?:st|nd|rd|th)?\b|` +
		`(?:` + monthNames + `)\b|(?:in|of|by|until|since|from|last|next|this|early|late|mid) (may)\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day|` +
		`\d{1,2}(?::\d{2})? ?(?:am|pm|a\.m|p\.m)\b|\d{1,2}:\d{2}|noon\b|midnight\b|(?:in|by|until|since) ((?:19|20)\d{2})\b|\d{1,2}(?:st|nd|rd|th)\b)`)
	numberValue = regexp.MustCompile(`(?i)\b(?:\d[\d,.:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)`)
	// pronounOne is "one" where it is not a number.
	pronounOne = regexp.MustCompile(`(?i)\b(?:(?:no|this|that|each|every|which|any|some) one|one (?:of|another|day))\b`)
)

// valuesOf returns the distinct numbers, weekdays and dates of a short statement, sorted.
func valuesOf(text string) []string {
	if !valueForm.possible(text) {
		return nil
	}
	return sortedSet(matches(valueForm.Regexp, text))
}

// valuesFor returns a function that returns the distinct values of a text that may answer
// the question, sorted: dates, weekdays and clock times for "when", numbers for "how
// many", and else both.
func valuesFor(question string) func(text string) []string {
	date, number := asksDate.MatchString(question), asksNumber.MatchString(question)
	return func(text string) (out []string) {
		text = pronounOne.ReplaceAllString(text, " ")
		if date || !number {
			out = matches(dateValue, text)
		}
		if number || !date {
			out = append(out, matches(numberValue, dateValue.ReplaceAllString(text, " "))...)
		}
		return sortedSet(out)
	}
}

// matches returns what the form matches, or its group, in lower case.
func matches(form *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimRight(strings.ToLower(cmp.Or(cmp.Or(m[1:]...), m[0])), ".,:"))
	}
	return out
}

func sortedSet(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
