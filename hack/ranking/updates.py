"""Measures the rule of internal/retrieve/updates.go, which ranks a newer statement of the user before those it updates.

    python hack/ranking/updates.py UNITS MODEL CACHE

UNITS, MODEL and CACHE are those of fit.py. Updates are the questions of BEAM with the groups original_info and updated_info. Histories
are ranked with weights learned without them. It prints the recall of the fact categories and the share of the
updates whose newer statement ranks first, without the rule, with it, and with one of its constants changed.
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
VALUE = re.compile(r"\b(?:how (?:many|much|long|often|old|far|big|large)|when|what|which)\b", re.I)
PAST = re.compile(r"\b(?:original\w*|initial\w*|before|previous\w*|used to|did|was|were|had|first|order)\b", re.I)
CUE = re.compile(
    r"\b(?:now|new|newly|recently|updat\w+|chang\w+|mov(?:ed|ing)|resched\w+|increas\w+|decreas\w+|improv\w+|extend\w+|adjust\w+|"
    r"no longer|instead|switch\w+|raised|reduced|grown|postponed|latest)\b", re.I)
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


def statement(question, texts, weights, clauses):
    """The share of the question's terms, the values and whether there is a cue, of the best statement with a value."""
    best, code, last = None, False, None
    for unit, text in texts:
        blocks = text.split("```")
        inside = code and unit == last + 1
        code, last = inside == (len(blocks) % 2 == 1), unit
        parts = [p for p in END.split(blocks[0]) if p.strip() and not inside]
        for i in range(len(parts)):
            part = " ; ".join(parts[i:i + clauses])
            values = values_of(question, part)
            about = sum(weights.get(t, 0) for t in sorted(set(fit.terms(part))))
            if values and (not best or about > best[0]):
                best = about, values, bool(CUE.search(part))
    return best


def newer_first(history, question, ranking, units, depth=DEPTH, about=ABOUT, equally=EQUALLY, clauses=CLAUSES):
    """The ranking of messages (conversation, index) with each newer statement in front of the older ones."""
    if not fit.ME.search(question) or not VALUE.search(question) or fit.YOU.search(question) or PAST.search(question):
        return ranking
    asked, df, texts = set(fit.terms(question)), collections.Counter(), collections.defaultdict(list)
    for i in sorted(units):
        u = history["units"][i]
        texts[u["c"], u["m"]].append((i, u["t"]))
        df.update(asked & set(fit.terms(u["t"])))
    idf = {t: math.log(1 + (len(units) - df[t] + 0.5) / (df[t] + 0.5)) for t in asked}
    weights = {t: v / sum(idf.values()) for t, v in idf.items()}
    pieces = [(history["units"][i]["c"], history["units"][i]["m"], history["units"][i]["t"]) for i in sorted(units)]
    labeled = {(c, m) for (c, m, _), label in zip(pieces, fit.speakers(pieces)) if label}
    stated = []
    for m in ranking[:depth]:
        message = history["convs"][m[0]]["messages"][m[1]]
        s = statement(question, texts[m], weights, clauses)
        if s and message["role"] == "human" and m not in labeled:
            stated.append((m, message["time"], *s))
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
        ranking = ranking[:to] + [s[0]] + ranking[to:at] + ranking[at + 1:]
    return ranking


def measure(data, histories, **constants):
    found, ordered = collections.defaultdict(list), []
    for history in histories:
        for question, scores, units in data[history["id"]]:
            places = [(history["units"][units[k]]["c"], history["units"][units[k]]["m"]) for k in np.argsort(-scores, kind="stable")]
            ranking = list(dict.fromkeys(places))
            if constants.get("depth") != 0:
                ranking = newer_first(history, question["q"], ranking, units, **constants)
            ids = [history["convs"][c]["messages"][m]["id"] for c, m in ranking]
            if history["set"] == "locomo" or question["cat"] in FACTS:
                for n in (5, 10):
                    found[history["set"], n].append(len(set(ids[:n]) & set(question["ev"])) / len(set(question["ev"])))
            groups = question.get("groups") or {}
            old, new = ([str(i) for i in groups.get(k, [])] for k in ("original_info", "updated_info"))
            if new and new != old:
                first = lambda wanted: next((k for k, i in enumerate(ids) if i in wanted), len(ids))
                ordered.append(first(new) < first(old))
    recall = ", ".join(f"{name} R@{n} {100 * np.mean(v):.1f}" for (name, n), v in sorted(found.items()))
    return f"{recall}, newer first {100 * np.mean(ordered):.1f} % of {len(ordered)}"


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
    print("without the rule:", measure(data, histories, depth=0))
    print("with the rule:", measure(data, histories))
    for name, values in {"depth": (5, 15), "about": (0.1, 0.2), "equally": (0.4, 0.6), "clauses": (2, 4)}.items():
        for value in values:
            print(f"{name} {value}:", measure(data, histories, **{name: value}))


if __name__ == "__main__":
    main()
