"""Learns weights of the features in internal/retrieve/relevance.json: the probability that the results for a question are relevant.

    python hack/ranking/relevance.py UNITS MODEL CACHE PAIRS > relevance.json

The weights in internal/retrieve/relevance.json come from an earlier selection of questions and reject more: see docs/retrieval.md.

UNITS, MODEL and CACHE are those of fit.py; PAIRS is test/e2e/testdata/paraphrases.tsv. Relevant are the sources
of the questions, memories asked for by a paraphrase, and texts asked for by rare words. Irrelevant is everything for gibberish, questions
about other topics, questions of other histories, rare words of other histories, and paraphrases without their memory. The
threshold is the highest below which at most 3 % of the relevant questions fall, in held-out histories. It prints how
many of each kind fall below it to stderr.
"""

import collections
import json
import math
import pathlib
import random
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import fit

FILE = pathlib.Path(__file__).parents[2] / "internal/retrieve/relevance.json"
LOST = 0.03  # mean share of the answerable questions of each set that may fall below the threshold
WEIGHTS = [np.array(json.loads((FILE.parent / "weights.json").read_text())[k]) for k in ("first", "weights")]
MODEL = json.loads(FILE.read_text())
OFF_TOPIC = [
    "What is the capital of Mongolia?", "How do vaccines work?", "Who won the 1998 World Cup?", "Explain quantum entanglement",
    "What's the boiling point of mercury?", "Translate 'good morning' to Finnish", "Best way to remove wine stains",
    "How tall is Mount Kilimanjaro?", "Who wrote the Odyssey?", "What is the exchange rate of the yen?", "rules of cricket",
    "Which planet has the most moons?", "List the kings of Denmark", "What is photosynthesis?", "How long do tortoises live?",
    "distance from the earth to the moon", "recipe for beef wellington", "history of the Ottoman empire",
]


class Background:
    """As in internal/retrieve/background.go, for memories (chat=False) or messages."""

    def __init__(self, embedder, chat):
        refs = MODEL["references"]
        texts = [p for p, _ in refs["pairs"]] + refs["texts"]
        name = lambda i: "human" if i < len(refs["pairs"]) or i % 2 == 0 else "assistant"
        dense = [f"passage: 2024-01-15 {name(i)}: {t}" if chat else "passage: (undated) " + t for i, t in enumerate(texts)]
        passages = np.stack([embedder.one(t) for t in dense])
        asked = np.stack([embedder.one("query: " + q) for _, q in refs["pairs"]])
        self.unrelated = np.stack([embedder.one("query: " + q) for q in refs["unrelated"]])
        self.mean, c = passages.mean(0), asked @ passages.T
        self.scale = np.mean([c[i, i] - np.delete(c[i], i).mean() for i in range(len(asked))])

    def margin(self, question, cosines):
        return (cosines - question @ self.mean) / self.scale

    def noise(self, vectors):
        return float(np.median([self.margin(q, (vectors @ q).max()) for q in self.unrelated]))


def features(question, order, margins, bags, candidates, noise):
    """Those of relevance.go. order has the first candidates, bags the terms of each text."""
    asked, n = sorted(set(fit.terms(question))), len(candidates)
    df = {t: sum(t in bags[i] for i in candidates) for t in asked}
    idf = {t: math.log(1 + (n - df[t] + 0.5) / (df[t] + 0.5)) for t in asked}
    covered = max(sum(idf[t] for t in asked if t in bags[i]) for i in order[:3]) / (sum(idf.values()) or 1)
    return [max(margins), noise, covered, float(bool(asked) and covered > 0.999)]


def gibberish(r, n):
    word = lambda: "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(4, 12)))
    return [" ".join(word() for _ in range(r.randint(1, 5))) for _ in range(n)]


def keywords(history, histories, r):
    """Questions of rare words, with the units that contain them, and of words that the history does not contain."""
    own, rare = collections.defaultdict(set), []
    for i, u in enumerate(history["units"]):
        for w in fit.words(u["t"]):
            own[w].add(i)
    for w, found in sorted(own.items()):
        if len(found) <= 3 and len(w) > 3 and fit.stem(w):
            rare.append(w)
    stems = {fit.stem(w) for w in own}
    other = sorted({w for h in histories if h is not history for u in h["units"][::20] for w in fit.words(u["t"])})
    other = [w for w in other if len(w) > 3 and fit.stem(w) and fit.stem(w) not in stems]
    yield from ((w, own[w], "keyword") for w in r.sample(rare, 40))
    yield from ((w, set(), "absent keyword") for w in r.sample(other, 40))


def of_history(history, histories, embedder, background):
    """Features, whether relevant, and kind, of the questions to a history."""
    r, units, convs = random.Random(history["id"]), history["units"], history["convs"]
    messages = [convs[u["c"]]["messages"][u["m"]] for u in units]
    foreign = [q["q"] for h in histories if h is not history for q in h["qs"] if q["ev"]]
    asked = [(q["q"], {i for i, m in enumerate(messages) if m["id"] in q["ev"]}, "question") for q in history["qs"] if q["ev"]]
    asked += [(q, set(), "foreign") for q in r.sample(foreign, 60)] + [(q, set(), "gibberish") for q in gibberish(r, 40)]
    asked += [(q, set(), "off-topic") for q in OFF_TOPIC] + list(keywords(history, histories, r))
    # examples() needs sources, and returns the candidates by message.
    copy = dict(history, id=history["id"] + ".relevance", qs=[{"q": q, "ev": [messages[i]["id"] for i in ev] or [""]} for q, ev, _ in asked])
    own = embedder.embed(history["id"] + ".own", [f"passage: {m['time'][:10]} {m['role']}: {u['t']}" for u, m in zip(units, messages)])
    np.save(f"{embedder.cache}/{copy['id']}.own.npy", own)
    found = list(fit.examples(copy, embedder))
    vectors = np.load(f"{embedder.cache}/{copy['id']}.perspective.npy")
    bags = [set(fit.terms(u["t"])) for u in units]
    for (question, ev, kind), (x, _, candidates, _, places), v in zip(asked, found, vectors):
        order = [candidates[k] for k in np.argsort(-fit.score(WEIGHTS, x, places))]
        if ev and not ev & set(order[:10]):
            continue
        f = features(question, order, background.margin(v, own[candidates] @ v), bags, candidates, background.noise(own[candidates]))
        yield f, bool(ev), kind


def of_pairs(pairs, embedder, background, chat):
    """The same for small accounts of memories or messages."""
    r, prefix = random.Random(7), "passage: 2024-03-05 human: " if chat else "passage: (undated) "
    passages = np.stack([embedder.one(prefix + t) for t, _ in pairs])
    bags = [set(fit.terms(t)) for t, _ in pairs]
    others = [(q, "gibberish") for q in gibberish(r, 60)] + [(q, "off-topic") for q in OFF_TOPIC]
    vectors = {q: embedder.one("query: " + q) for q in [q for _, q in pairs] + [q for q, _ in others]}
    for _ in range(4):
        for i, (_, q) in enumerate(pairs):
            rest = [j for j in r.sample(range(len(pairs)), r.choice([2, 4, 8, 20, 50, 90])) if j != i]
            for relevant in (True, False):
                yield small(q, vectors[q], rest + [i] * relevant, passages, bags, background), relevant, "paraphrase"
        for q, kind in others:
            yield small(q, vectors[q], r.sample(range(len(pairs)), r.choice([1, 4, 20, 90])), passages, bags, background), False, kind


def small(question, v, chosen, passages, bags, background):
    cosines = passages[chosen] @ v
    order = [chosen[k] for k in np.argsort(-cosines)]
    return features(question, order, background.margin(v, cosines), bags, chosen, background.noise(passages[chosen]))


def balanced(groups):
    """All examples, with equal weight for each group and label."""
    x, y, w = [], [], []
    for rows in groups:
        count = collections.Counter(relevant for _, relevant, _ in rows)
        for f, relevant, _ in rows:
            x.append(f), y.append(relevant), w.append(1000 / count[relevant])
    return LogisticRegression(C=1, max_iter=3000).fit(np.array(x), y, sample_weight=w)


def main():
    units, model, cache, pairs = sys.argv[1:]
    histories = json.loads(pathlib.Path(units).read_text())
    pairs = [line.split("\t") for line in pathlib.Path(pairs).read_text().splitlines()]
    embedder = fit.Embedder(model, cache)
    chat, memory = Background(embedder, True), Background(embedder, False)
    groups = {h["id"]: (h["set"], list(of_history(h, histories, embedder, chat))) for h in histories}
    groups["pairs"] = ("pairs", list(of_pairs(pairs, embedder, chat, True)))
    groups["memories"] = ("memories", list(of_pairs(pairs, embedder, memory, False)))
    def merged(without):
        sets = collections.defaultdict(list)
        for key, (name, rows) in groups.items():
            if key != without:
                sets[name] += rows
        return balanced([rows for rows in sets.values()])

    scores = collections.defaultdict(list)
    for held, (name, rows) in groups.items():
        lr = merged(held)
        for f, relevant, kind in rows:
            scores[name, kind, relevant].append(float(lr.predict_proba([f])[0, 1]))
    questions = [np.array(s) for (_, kind, relevant), s in scores.items() if relevant and kind != "keyword"]
    lost = lambda t: np.mean([np.mean(s < t) for s in questions])
    threshold = max(t for t in np.arange(0.01, 1, 0.01) if lost(t) <= LOST)
    for (name, kind, relevant), s in sorted(scores.items()):
        below = 100 * np.mean(np.array(s) < threshold)
        print(f"{name} {kind} {'relevant' if relevant else 'irrelevant'}: {below:.1f} % below {threshold:.3f}", file=sys.stderr)
    lr = merged(None)
    out = dict(MODEL, threshold=round(threshold, 2), weights=[round(float(w), 2) for w in lr.coef_[0]], bias=round(float(lr.intercept_[0]), 2))
    json.dump(out, sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
