"""Measures the rules of internal/retrieve that move single messages after the ranking: conversation.go, updates.go and contradictions.go.

    python hack/ranking/rules.py UNITS MODEL CACHE

UNITS, MODEL and CACHE are those of fit.py. Updates are the questions of BEAM with the groups original_info and updated_info, contradictions
those with first_statement and second_statement. Histories are ranked with weights learned without them. It prints the recall of LoCoMo
and of BEAM's fact categories, the share of the questions with the conversation of a source first (hit@1), of the updates whose newer statement
ranks first, and of the contradictions with both statements in the first ten, without the rules, with each, with all, and with a constant changed.
"""

import collections
import json
import math
import re
import sys

import numpy as np

import fit

FACTS = {"information_extraction", "knowledge_update", "multi_session_reasoning", "temporal_reasoning", "contradiction_resolution"}
DEPTH, ABOUT, EQUALLY, CLAUSES = 10, 0.15, 0.5, 3
LEAD, SIDES, SECOND = 3, 20, 2
VALUE = re.compile(r"\b(?:how (?:many|much|long|often|old|far|big|large)|when|what|which)\b", re.I)
PAST = re.compile(
    r"\b(?:between|original\w*|initial\w*|before|previous\w*|used to|did|was|were|had|order)\b|\bfirst(?:\s*(?:[^\w\s]|$)|\s+or\b)", re.I)
CUE = re.compile(
    r"\b(?:now|new|newly|recently|updat\w+|chang\w+|mov(?:ed|ing)|resched\w+|increas\w+|decreas\w+|improv\w+|extend\w+|adjust\w+|"
    r"no longer|instead|switch\w+|raised|reduced|grown|postponed|latest)\b", re.I)
WHETHER = re.compile(r"^\W*(?:have|has|had|do|does|did|am|are|is|was|were)\b", re.I)
DENIES = re.compile(r"\b(?:never|not|no|none|nothing|nobody|without|cannot)\b|n['’]t\b", re.I)
INTENDS = re.compile(
    r"['’]ll\b|\b(?:will|would|can|could|should|want\w*|going to|gonna|plan\w*|hope|hoping|try|trying|needs?|wonder\w*|might|if)\b|\?", re.I)
END = re.compile(r"[.!?;]\s+|\n+|,\s|\s[-–—]\s|\b(?:and|but|so|which|since|especially|because)\b")
NAMES = "|".join(m for m in fit.MONTHS if m != "may")
DATES = re.compile(r"\b(?:when|(?:what|which) (?:date|day|month))\b", re.I)
NUMBERS = re.compile(r"\bhow (?:many|much)\b", re.I)
DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}(?:/\d{2,4})?|"
    rf"\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{NAMES}|may)\b|(?:{NAMES}|may) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b|"
    rf"(?:{NAMES})\b|(?:in|of|by|until|since|from|last|next|this|early|late|mid) (may)\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"\d{1,2}(?::\d{2})? ?(?:am|pm|a\.m|p\.m)\b|\d{1,2}:\d{2}|noon\b|midnight\b|(?:in|by|until|since) ((?:19|20)\d{2})\b|"
    r"\d{1,2}(?:st|nd|rd|th)\b)", re.I)
NUMBER = re.compile(r"\b(?:\d[\d,.:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)", re.I)
PRONOUN = re.compile(r"\b(?:(?:no|this|that|each|every|which|any|some) one|one (?:of|another|day))\b", re.I)


def values_of(question, text):
    """The values of a text that may answer the question: dates for "when", numbers for "how many", and else both."""
    date, number, text = DATES.search(question), NUMBERS.search(question), PRONOUN.sub(" ", text)
    found = [m for m in DATE.finditer(text) if date or not number]
    found += [m for m in NUMBER.finditer(DATE.sub(" ", text)) if number or not date]
    return {next(filter(None, m.groups()), m[0]).lower().rstrip(".,:") for m in found}


def prose(texts):
    """The text up to the first code block of each piece (unit, text) of a message, in order."""
    code, last = False, None
    for unit, text in texts:
        blocks = text.split("```")
        inside = code and unit == last + 1
        code, last = inside == (len(blocks) % 2 == 1), unit
        if not inside:
            yield blocks[0]


def clauses_of(text):
    return [p for p in END.split(text) if p and p.strip()]


class Candidates:
    """The candidates of a question: the texts of each message, the weights of the question's terms, and what the user wrote."""

    def __init__(self, history, question, units):
        asked, df = set(fit.terms(question)), collections.Counter()
        self.question, self.messages, self.texts = question, history["convs"], collections.defaultdict(list)
        for i in sorted(units):
            u = history["units"][i]
            self.texts[u["c"], u["m"]].append((i, u["t"]))
            df.update(asked & set(fit.terms(u["t"])))
        idf = {t: math.log(1 + (len(units) - df[t] + 0.5) / (df[t] + 0.5)) for t in asked}
        self.weights = {t: v / sum(idf.values()) for t, v in idf.items()}
        pieces = [(history["units"][i]["c"], history["units"][i]["m"], history["units"][i]["t"]) for i in sorted(units)]
        self.labeled = {(c, m) for (c, m, _), label in zip(pieces, fit.speakers(pieces)) if label}

    def message(self, m):
        return self.messages[m[0]]["messages"][m[1]]

    def by_user(self, m):
        return self.message(m)["role"] == "human" and m not in self.labeled

    def about(self, text):
        return sum(self.weights.get(t, 0) for t in sorted(set(fit.terms(text))))


def statement(candidates, m, clauses):
    """The share of the question's terms, the values and whether there is a cue, of the best statement with a value."""
    best = None
    for text in prose(candidates.texts[m]):
        parts = clauses_of(text)
        for i in range(len(parts)):
            part = " ; ".join(parts[i:i + clauses])
            values, about = values_of(candidates.question, part), candidates.about(part)
            if values and (not best or about > best[0]):
                best = about, values, bool(CUE.search(part))
    return best


def newer_first(candidates, ranking, odds, depth=DEPTH, about=ABOUT, equally=EQUALLY, clauses=CLAUSES):
    """The ranking of messages (conversation, index) with each newer statement in front of the older ones."""
    question = candidates.question
    if not VALUE.search(question) or fit.YOU.search(question) or PAST.search(question):
        return ranking
    stated = []
    for m in ranking[:depth]:
        s = statement(candidates, m, clauses)
        if s and candidates.by_user(m):
            stated.append((m, candidates.message(m)["time"], *s))
    known = {m: (time, about, values) for m, time, about, values, _ in stated}

    def replaces(new, time, new_about, values, cue, old):
        if old not in known:
            return False
        old_time, old_about, old_values = known[old]
        after = new[1] > old[1] if new[0] == old[0] else time > old_time
        return after and cue and old_about >= about and new_about >= max(about, equally * old_about) and values != old_values

    for s in sorted(stated, key=lambda s: (s[1], s[0][1])):
        at = ranking.index(s[0])
        to = next((k for k in range(at) if replaces(*s, ranking[k])), at)
        ranking = moved(ranking, at, to)
    return ranking


def moved(ranking, at, to):
    rest = ranking[:at] + ranking[at + 1:]
    return rest[:to] + [ranking[at]] + rest[to:]


def conversation_first(candidates, ranking, odds, lead=LEAD, heat=1.0):
    """The ranking with the best message of the conversation that most likely contains the answer first, if it is one of the best."""
    total = collections.Counter()
    for m in ranking:
        total[m[0]] += odds[m] ** (1 / heat)
    return moved(ranking, max(range(min(lead, len(ranking))), key=lambda k: total[ranking[k][0]]), 0)


def both_sides(candidates, ranking, odds, sides=SIDES, about=ABOUT, second=SECOND):
    """The ranking with the best message that affirms or denies what is asked behind the one that says the opposite."""
    if not WHETHER.search(candidates.question) or fit.YOU.search(candidates.question):
        return ranking
    best = {}
    for k, m in enumerate(ranking[:sides]):
        for text in prose(candidates.texts[m]) if candidates.by_user(m) else ():
            for clause in clauses_of(text):
                denied, share = bool(DENIES.search(clause)), candidates.about(clause)
                if share >= about and share > best.get(denied, (0, 0))[0] and (denied or not INTENDS.search(clause)):
                    best[denied] = share, k
    if len(best) < 2:
        return ranking
    to, at = sorted(k for _, k in best.values())
    return moved(ranking, at, max(second, to + 1)) if at > max(second, to + 1) else ranking


RULES = {conversation_first: {}, newer_first: {}, both_sides: {}}


def measure(data, histories, rules):
    found, hits, ordered, both = collections.defaultdict(list), collections.defaultdict(list), [], []
    for history in histories:
        message = lambda m: history["convs"][m[0]]["messages"][m[1]]
        for question, scores, units in data[history["id"]]:
            ranking, odds = [], {}
            for k in np.argsort(-scores, kind="stable"):
                place = history["units"][units[k]]["c"], history["units"][units[k]]["m"]
                if place not in odds:
                    ranking.append(place)
                    odds[place] = math.exp(scores[k])
            candidates = Candidates(history, question["q"], units)
            for rule, constants in rules.items():
                ranking = rule(candidates, ranking, odds, **constants)
            ids, sources = [message(m)["id"] for m in ranking], set(question["ev"])
            if history["set"] == "locomo" or question["cat"] in FACTS:
                for n in (1, 5, 10):
                    found[history["set"], n].append(len(set(ids[:n]) & sources) / len(sources))
                inside = {c for c, chat in enumerate(history["convs"]) for m in chat["messages"] if m["id"] in sources}
                hits[history["set"]].append(ranking[0][0] in inside)
            groups = {k: [str(i) for i in v] for k, v in (question.get("groups") or {}).items()}
            first = lambda name: next((k for k, i in enumerate(ids) if i in groups[name]), len(ids))
            if "updated_info" in groups and groups["updated_info"] != groups.get("original_info"):
                ordered.append(first("updated_info") < first("original_info"))
            if "first_statement" in groups:
                both.append(max(first("first_statement"), first("second_statement")) < 10)
    out = [f"{name} R@{n} {100 * np.mean(v):.1f}" for (name, n), v in sorted(found.items())]
    out += [f"{name} hit@1 {100 * np.mean(v):.1f}" for name, v in sorted(hits.items())]
    return ", ".join(out) + f", newer first {sum(ordered)} of {len(ordered)}, both statements {sum(both)} of {len(both)}"


def main():
    units, model, cache = sys.argv[1:]
    with open(units) as file:
        histories = json.load(file)
    embedder = fit.Embedder(model, cache)
    examples = {h["id"]: list(fit.examples(h, embedder)) for h in histories}
    weight = {h["id"]: fit.BEAM_WEIGHT if h["set"] == "beam" else 1.0 for h in histories}
    data = {}
    for h in histories:
        b = fit.fit([(x, y, weight[k], places) for k in examples if k != h["id"] for x, y, _, _, places in examples[k]])
        asked = [q for q in h["qs"] if q["ev"]]
        data[h["id"]] = [(q, fit.score(b, x, places), ix) for q, (x, _, ix, _, places) in zip(asked, examples[h["id"]])]
    print("without the rules:", measure(data, histories, {}))
    for rule in RULES:
        print(f"{rule.__name__} alone:", measure(data, histories, {rule: {}}))
    print("with all:", measure(data, histories, RULES))
    for rule, constants in {
        conversation_first: {"lead": (2, 5, 10), "heat": (0.5, 0.75, 1.25, 1.5)},
        newer_first: {"depth": (5, 15), "about": (0.1, 0.2), "equally": (0.4, 0.6), "clauses": (2, 4)},
        both_sides: {"sides": (15, 30), "about": (0.1, 0.2, 0.3), "second": (1, 4, 9)},
    }.items():
        for name, values in constants.items():
            for value in values:
                print(f"{rule.__name__}, {name} {value}:", measure(data, histories, {**RULES, rule: {name: value}}))


if __name__ == "__main__":
    main()
