"""Writes the features and scores of a small sample, which internal/retrieve/context_test.go compares with those of the server.

    python hack/ranking/golden.py > internal/retrieve/testdata/ranking.json

Run it after fit.py, whose features it uses. It needs no model: the vectors are made up.
"""

import collections
import json
import pathlib
import sys

import numpy as np

import fit

WEIGHTS = json.loads((pathlib.Path(__file__).parents[2] / "internal/retrieve/weights.json").read_text())
QUESTIONS = {
    "When did Anna visit the museum in May 2024?": [8, 4, -2, 1],
    "What did you recommend for my garden?": [2, -6, 5, 7],
}
# Conversation, message, sender, day, text, vector, lexical score; no text for a message that is only a neighbor.
MESSAGES = [
    ("a", 0, "human", "2024-05-02", "Anna: I visited the museum with my sister yesterday.", [7, 5, -1, 1], 0.31),
    ("a", 1, "assistant", "2024-05-02", "Ben: Wow! How did you like the museum, and your visit?", [6, 3, 0, 2], 0.28),
    ("a", 2, "human", "2024-05-02", "Anna: The old maps were great.", [3, 6, -3, 0], 0.12),
    ("a", 3, "assistant", "2024-05-02", "", [4, 4, 1, -2], 0),
    ("a", 7, "assistant", "2024-06-11", "Ben: The garden needs water!!", [1, -5, 4, 6], 0.07),
    ("b", 0, "human", "2024-05-20", "What should I plant in my garden? It gets sun all day", [2, -7, 5, 3], 0.22),
    ("b", 1, "assistant", "2024-05-20", "I recommend lavender for your garden: it needs little water, and you can plant it this summer.", [1, -6, 6, 5], 0.25),
    ("b", 1, "assistant", "2024-05-20", "Roses are another choice; x != y is not an exclamation.", [0, -4, 7, 2], 0),
    ("b", 2, "human", "2024-05-20", "Thanks! I planted 12 of them in 2023.", [2, -3, 2, 6], 0.02),
    ("b", 3, "assistant", "2024-05-20", "", [3, 3, 3, 3], 0),
]


def sample(question, vector):
    vector, found = np.array(vector, float), [m for m in MESSAGES if m[4]]
    labels = fit.speakers([(m[0], m[1], m[4]) for m in found])
    names = set(fit.words(question)) & set(filter(None, labels))
    vectors, best = np.array([m[5] for m in found], float), collections.defaultdict(lambda: -np.inf)
    for m in MESSAGES:
        best[m[0], m[1]] = max(best[m[0], m[1]], np.array(m[5]) @ vector)
    median = fit.upper_median(vectors @ vector)
    beside = [[best.get((m[0], m[1] + d), median) for m in found] for d in (-1, 1)]
    candidates = [({"role": m[2], "time": m[3]}, m[4], label) for m, label in zip(found, labels)]
    x = fit.features(question, names, candidates, vectors @ vector, beside, np.array([m[6] for m in found]))
    x, places = np.hstack([x, fit.context(candidates, vectors, vector)]), [m[:2] for m in found]
    first, weights = np.array(WEIGHTS["first"]), np.array(WEIGHTS["weights"])
    rows, scores = fit.second(x, places, first), fit.score((first, weights), x, places)
    return {"question": question, "vector": vector.tolist(), "features": rows.round(6).tolist(), "scores": scores.round(6).tolist()}


def main():
    keys = "owner seq sender day text vector lexical".split()
    out = {"messages": [dict(zip(keys, m)) for m in MESSAGES], "questions": [sample(*q) for q in QUESTIONS.items()]}
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
