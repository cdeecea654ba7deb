"""Learns the weights in internal/retrieve/weights.json from LoCoMo- and BEAM-format files.

    python hack/ranking/fit.py UNITS MODEL CACHE > internal/retrieve/weights.json

UNITS is the output of `go run ./hack/ranking FILE...`, a JSON list of histories: {"id", "set": "locomo" | "beam",
"convs": [{"messages": [{"id", "role", "text", "time"}]}], "units": [{"c": conversation, "m": message, "t": piece}],
"qs": [{"q", "cat", "ev": [ids], "groups": {name: [ids]}}]}; the pieces are those of retrieve.Split. Never commit it.
MODEL is a directory with model.onnx and tokenizer.json (e5-small-v2 int8), CACHE one for the embeddings, by history: empty it after
a new export. Needs the packages in requirements.txt. The features are those of internal/retrieve/features.go;
a listwise softmax over the candidates of each question is fitted with L2 regularization: first with the features in NAMES, then
also with those in CONTEXT, of which near is the first score of a neighbor. It prints the recall at 10 of each history with
weights learned without it to stderr, and the weights learned from all to stdout.
"""

import collections
import datetime
import functools
import json
import math
import os
import re
import sys

import numpy as np
import onnxruntime
import snowballstemmer
import tokenizers
from scipy.optimize import minimize

# SEARCHED is the number of results of each search, DEPTH that of the candidates.
SEARCHED, DEPTH, L2, BEAM_WEIGHT = 400, 200, 5.0, 2.0
NAMES = "meaning before after lexical lexicalShort words wordsShort speaker human me you when month day question".split()
CONTEXT = "centred addressed exclaims near".split()
STOP = set(
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they "
    "them their theirs themselves what which who whom this that these those am is are was were be been being have has had having do does "
    "did doing a an the and but if or because as until while of at by for with about against between into through during before after "
    "above below to from up down in out on off over under again further then once here there when where why how all any both each few "
    "more most other some such no nor not only own same so than too very s t can will just don should now".split()
)
MONTHS = "january february march april may june july august september october november december".split()
LABEL = re.compile(r"^([A-Z][\w.-]{1,20})(?: [A-Z][\w.-]{1,20})?: ")
YOU = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou (?:recommend|suggest|advis|said|say|explain|told|tell|give|gave)"
    r"|\byour (?:recommend|suggest|advice|explan|answer)", re.I)
ME = re.compile(r"\b(?:i|my|i'm|i've|me|mine)\b", re.I)
WHEN = re.compile(r"\b(?:when|what (?:date|day|month|year|time)|how long|which (?:year|month|day))\b", re.I)
TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|this (?:week|month|year|weekend|morning|evening|summer|past)|recently|weekend|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|" + "|".join(m for m in MONTHS if m != "may") +
    r"|\d{4}|\d+(?:st|nd|rd|th)|since|years?|months?|weeks?|days?)\b", re.I)
DATE = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th)? +(?:of +)?)?\b(" + "|".join(MONTHS) + r")\b(?: *(?:the )?(\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? *(\d{4}))?", re.I)


class Embedder:
    def __init__(self, directory, cache):
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(384)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(os.path.join(directory, "model.onnx"), options)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.cache = cache

    def embed(self, name, texts):
        path = os.path.join(self.cache, name + ".npy")
        if not os.path.exists(path):
            np.save(path, np.stack([self.one(t) for t in texts]))
        return np.load(path)

    def one(self, text):
        ids = np.array([self.tokenizer.encode(text).ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = self.session.run(None, {k: feed[k] for k in self.inputs})[0][0].mean(0)
        return mean / np.linalg.norm(mean)


@functools.lru_cache(None)
def stem(w):
    if w in STOP:
        return ""
    if len(w) == 4 and w.endswith("s") and not w.endswith("ss"):
        return w[:3]
    if len(w) <= 4:
        return w
    for ending in ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly"):
        if w.endswith(ending) and len(w) - len(ending) >= 3:
            w = w[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            if len(w) > 3 and w[-1] == w[-2] and w[-1] not in "sl":
                w = w[:-1]
            return w.removesuffix("e")
    if w.endswith("s") and not w.endswith("ss"):
        w = w[:-1]
    return w.removesuffix("e") if len(w) > 4 else w


def words(text):
    return re.findall(r"\w+", re.sub(r"['’]s\b", "", text.lower()))


def terms(text):
    return [s for s in map(stem, words(text)) if s]


english = snowballstemmer.stemmer("english")


@functools.lru_cache(None)
def lexeme(w):
    return "" if w in STOP else english.stemWord(w)


def lexical(history):
    """The scores of lexical_ranking in the database: idf times ts_rank over a piece and the two messages on either side."""
    bags = []
    for u in history["units"]:
        ms, j = history["convs"][u["c"]]["messages"], u["m"]
        window = [m["text"][-600:] for m in ms[max(0, j - 2):j]] + [u["t"]] + [m["text"][:600] for m in ms[j + 1:j + 3]]
        bags.append(collections.Counter(t for t in map(lexeme, re.findall(r"\w+", " ".join(window).lower())) if t))
    n, df = len(bags), collections.Counter(t for b in bags for t in b)
    inverted = collections.defaultdict(list)
    for i, b in enumerate(bags):
        for t in b:
            inverted[t].append(i)
    rank = np.cumsum([1 / (j + 1) ** 2 for j in range(2000)]) * 0.1 / 1.64493406685
    out = np.zeros((len(history["qs"]), n))
    for qi, q in enumerate(history["qs"]):
        idf = {t: math.log(1 + (n - df[t] + 0.5) / (df[t] + 0.5)) for t in map(lexeme, words(q["q"])) if t and df[t]}
        rare = [t for t in idf if idf[t] > 0.5] or list(idf)
        for t in sorted(rare, key=lambda t: -idf[t])[:6]:
            for i in inverted[t]:
                out[qi, i] += idf[t] * rank[min(bags[i][t], 2000) - 1]
    out /= 1 + np.log(np.maximum(1, [len(b) for b in bags]))
    for row in out:
        row[np.argsort(-row, kind="stable")[SEARCHED:]] = 0
    return out


def speakers(pieces):
    """The speaker of each piece (conversation, message, text) in lower case, or "". Most messages of the conversation must begin with a
    label, and another one of it or another message with the same label. Only the first piece of a message has one."""
    first, labels = {}, []
    for c, m, text in pieces:
        labels.append("" if (c, m) in first else (LABEL.match(text) or ["", ""])[1].lower())
        first.setdefault((c, m), labels[-1])
    messages = collections.Counter(c for c, _ in first)
    labeled, named = collections.Counter(c for (c, _), l in first.items() if l), collections.Counter(first.values())
    return [l if 2 * labeled[c] > messages[c] and (labeled[c] > 1 or named[l] > 1) else "" for (c, _, _), l in zip(pieces, labels)]


def perspective(question, names):
    def replace(m):
        plain = re.sub(r"['’]s$", "", m[0])
        return m[0] if plain.lower() not in names else "my" if plain != m[0] else "I"
    return re.sub(r"\w+(?:['’]s\b)?", replace, question)


def bm25(question, bags):
    n, mean, out = len(bags), max(1, sum(sum(b.values()) for b in bags) / len(bags)), np.zeros(len(bags))
    for t in dict.fromkeys(question):
        df = sum(t in b for b in bags)
        idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
        for i, b in enumerate(bags):
            if b[t]:
                out[i] += idf * b[t] * 1.9 / (b[t] + 0.9 * (0.6 + 0.4 * sum(b.values()) / mean))
    return out


def signs(question, names, message, text, label):
    """The features that are not standardized, of one candidate."""
    you, human = bool(YOU.search(question)), message["role"] == "human"
    me = bool(ME.search(question)) and not you
    month = day = False
    for d1, name, d2, year in DATE.findall(question):
        number = 0 if d1 and d2 else int(d1 + d2 or 0)
        if name.lower() == "may" and not number and not year:
            continue
        at, named = datetime.date.fromisoformat(message["time"][:10]), MONTHS.index(name.lower()) + 1
        if at.month == named and (not year or int(year) == at.year):
            month = True
        for y in range(at.year - 1, at.year + 2):
            if 0 < number <= 31 and (not year or int(year) == y):
                day = day or abs((at - datetime.date(y, named, 1)).days + 1 - number) <= 3
    return {
        "speaker": (1 if label in names else -1) if label and names else 0,
        "human": not label and human, "me": not label and human and me, "you": not label and not human and you,
        "when": min(2, len(TIME.findall(text))) if WHEN.search(question) else 0,
        "month": month, "day": day, "question": text.rstrip().endswith("?"),
    }


def standard(values, least=1e-9):
    return (np.array(values, float) - np.mean(values)) / max(np.std(values), least)


def fuse(lexical, cosines):
    """The first units of both searches, best first, as Fuse in internal/retrieve/fuse.go."""
    found = np.flatnonzero(lexical)
    ix = np.array(sorted({*found, *np.argsort(-cosines, kind="stable")[:SEARCHED]}))
    floor = min(lexical[found]) if len(found) == SEARCHED else 0.0
    total = standard(np.maximum(lexical[ix], floor), 1e-12) + standard(cosines[ix], 0.01)
    return ix[np.argsort(-total, kind="stable")][:DEPTH]


def upper_median(values):
    return float(np.sort(values)[len(values) // 2])


def features(question, names, candidates, cosines, beside, lexical):
    """The features in NAMES of candidates (message, piece, speaker). beside are the cosines of the messages before and after."""
    skip, texts = {stem(n) for n in names}, [words(t) for _, t, _ in candidates]
    asked = [t for t in terms(question) if t not in skip]
    f = {"meaning": cosines, "before": beside[0], "after": beside[1], "lexical": lexical,
         "words": bm25(asked, [collections.Counter(filter(None, map(stem, t))) for t in texts])}
    f = {k: standard(v) for k, v in f.items()}
    short = np.array([min(1, 40 / (len(t) + 20)) for t in texts])
    f["lexicalShort"], f["wordsShort"] = f["lexical"] * short, f["words"] * short
    rest = [signs(question, names, *c) for c in candidates]
    return np.array([[f[n][k] if n in f else float(rest[k][n]) for n in NAMES] for k in range(len(candidates))])


def context(candidates, vectors, question):
    """The features in CONTEXT but near, of candidates (message, piece, speaker) with their vectors and that of the question."""
    mean = vectors.mean(0)
    length = np.linalg.norm(vectors - mean, axis=1)
    centred = np.where(length > 1e-3, (vectors - mean) @ (question - mean) / np.maximum(length, 1e-3), 0)
    addressed = [min(2, sum(w in ("you", "your") for w in words(t))) for _, t, _ in candidates]
    exclaims = [float(bool(re.search(r"!(?:\s|$)", t))) for _, t, _ in candidates]
    return np.column_stack([standard(centred), addressed, exclaims])


def near(first, places):
    """The feature near: the better first score of the messages before and after, or the median."""
    best = collections.defaultdict(lambda: -math.inf)
    for p, s in zip(places, first):
        best[p] = max(best[p], s)
    none = upper_median(first)
    return standard([max((best[c, m + d] for d in (-1, 1) if (c, m + d) in best), default=none) for c, m in places])


def second(x, places, first):
    """The features of the second score. first are the weights of the first one, which ignores those in CONTEXT."""
    return np.column_stack([x, near(x[:, :len(NAMES)] @ first, places)])


def examples(history, embedder):
    """For each question with sources: features of its candidates, whether each is a source, their units, the sources, their places."""
    units, convs, qs = history["units"], history["convs"], history["qs"]
    messages = [convs[u["c"]]["messages"][u["m"]] for u in units]
    labels = speakers([(u["c"], u["m"], u["t"]) for u in units])
    names = [set(words(q["q"])) & set(filter(None, labels)) for q in qs]
    own = embedder.embed(history["id"] + ".own", [f"passage: {m['time'][:10]} {m['role']}: {u['t']}" for u, m in zip(units, messages)])
    plain = embedder.embed(history["id"] + ".q", ["query: " + q["q"] for q in qs]) @ own.T
    asked = embedder.embed(history["id"] + ".perspective", ["query: " + perspective(q["q"], n) for q, n in zip(qs, names)])
    cosines, lex, places = asked @ own.T, lexical(history), [(u["c"], u["m"]) for u in units]
    for qi, q in enumerate(qs):
        if not q["ev"]:
            continue
        ix, best = fuse(lex[qi], plain[qi]), collections.defaultdict(lambda: -1.0)
        for p, c in zip(places, cosines[qi]):
            best[p] = max(best[p], c)
        median = upper_median(cosines[qi, ix])
        beside = [[best.get((places[i][0], places[i][1] + d), median) for i in ix] for d in (-1, 1)]
        candidates = [(messages[i], units[i]["t"], labels[i]) for i in ix]
        x = features(q["q"], names[qi], candidates, cosines[qi, ix], beside, lex[qi, ix])
        x = np.hstack([x, context(candidates, own[ix], asked[qi])])
        yield x, np.array([messages[i]["id"] in q["ev"] for i in ix]), ix, q["ev"], [places[i] for i in ix]


def softmax_fit(data):
    """Weights that maximize the listwise softmax likelihood of the sources. data has (features, is source, weight)."""
    data = [(x, y, w) for x, y, w in data if y.any()]

    def loss(b):
        total, gradient = L2 * b @ b / 2, L2 * b
        for x, y, w in data:
            s = x @ b
            log_p = s - s.max() - math.log(np.exp(s - s.max()).sum())
            target = y / y.sum()
            total -= w * target @ log_p
            gradient = gradient - w * x.T @ (target - np.exp(log_p))
        return total, gradient

    return minimize(loss, np.zeros(data[0][0].shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x


def fit(data):
    """The weights of the first and the second score. data has (features, is source, weight, places)."""
    data = list(data)
    first = softmax_fit([(x[:, :len(NAMES)], y, w) for x, y, w, _ in data])
    return first, softmax_fit([(second(x, places, first), y, w) for x, y, w, places in data])


def score(weights, x, places):
    return second(x, places, weights[0]) @ weights[1]


def recall(scores, ids, sources):
    ranked = list(dict.fromkeys(ids[i] for i in np.argsort(-scores, kind="stable")))
    return len(set(ranked[:10]) & set(sources)) / len(sources)


def main():
    units, model, cache = sys.argv[1:]
    with open(units) as file:
        histories = json.load(file)
    embedder = Embedder(model, cache)
    data = {h["id"]: list(examples(h, embedder)) for h in histories}
    ids = {h["id"]: [h["convs"][u["c"]]["messages"][u["m"]]["id"] for u in h["units"]] for h in histories}
    weight = {h["id"]: BEAM_WEIGHT if h["set"] == "beam" else 1.0 for h in histories}
    rows = lambda keys: [(x, y, weight[k], places) for k in keys for x, y, _, _, places in data[k]]
    for held in data:
        b = fit(rows(k for k in data if k != held))
        mean = np.mean([recall(score(b, x, places), [ids[held][i] for i in ix], sources) for x, _, ix, sources, places in data[held]])
        print(f"{held}: recall@10 {100 * mean:.1f}", file=sys.stderr)
    first, weights = ([round(float(w), 3) for w in b] for b in fit(rows(data)))
    json.dump({"features": NAMES + CONTEXT, "first": first, "weights": weights}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
