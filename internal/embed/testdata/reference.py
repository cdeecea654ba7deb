"""Writes reference.json: token ids by Hugging Face tokenizers, vectors by onnxruntime in fp32.

Usage: python reference.py MODELS > reference.json
MODELS has a folder with model.onnx and tokenizer.json of each model in fp32.
"""

import json
import sys

import numpy
import onnxruntime
from tokenizers import Tokenizer

PANGRAM = "The quick brown fox jumps over the lazy dog. "
TEXTS = [
    # English, as memories and questions come
    "I prefer window seats on long flights.",
    "Where does the user like to sit on a plane?",
    "what did i say about my sister's wedding last may",
    "My daughter Emma starts school in September; remind me to buy a backpack.",
    "Caroline: Hey Mel! Good to see you! How have you been?",
    "The meeting was moved from 3:30pm to 16:00 on 2023-05-08 (UTC+2).",
    "He paid $1,299.99 — 15% off — for the laptop.",
    "ALL CAPS SHOUTING!!! and then... silence",
    "user@example.com visited https://example.com/a/b?c=d&e=f#g",
    "antidisestablishmentarianism floccinaucinihilipilification",
    # accents and other scripts
    "Café, naïve, résumé, Ångström, jalapeño, Dvořák",
    "Cafe\u0301 with a combining accent, and A\u030angstro\u0308m",
    "Straße und Übergröße: ÄÖÜäöüß",
    "İstanbul'da ışık IŞIK",
    "Ελληνικά: ΣΊΣΥΦΟΣ σίσυφος",
    "Съешь ещё этих мягких французских булок, да выпей чаю",
    "שלום עולם",
    "السلام عليكم ورحمة الله",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "Tiếng Việt: Nguyễn Văn Ước",
    "我喜欢靠窗的座位。",
    "東京タワーは高いです。カタカナとひらがな",
    "한국어 문장입니다. 서울은 아름답다",
    "mixed 中文 and English混在テキスト",
    # emoji, symbols, odd white space
    "Great job 👍🏽 family 👨‍👩‍👧‍👦 flag 🇩🇪 heart ❤️",
    "½ ² ™ ® © € £ ¥ → ∞ ≈ ≠ √ ﬁ Ａ１",
    "tabs\tand\nnew\r\nlines\u00a0no-break\u3000wide\u200bzero\u00adsoft",
    "null\u0000byte bell\u0007 replacement\ufffd bom\ufeff",
    # code and special tokens written out
    "func main() { fmt.Println(\"hello, 世界\") } // x := a[i]&^b<<2",
    "SELECT id, tsv @@ q FROM units WHERE user_id = $1 ORDER BY rank DESC;",
    "{\"key\": [1, 2.5e-3, null, true], \"nested\": {\"a\\\\b\": \"c\"}}",
    "[CLS] is not [SEP] nor [MASK] [cls] [UNK][PAD] [SEP",
    # empty and nearly so
    "",
    "   \n\t ",
    ".",
    "a",
    "\u0301",
    "?!...,;:-_'\"()[]{}<>|/\\@#$%^&*~`+=",
    # lengths: the limit of a word, of the windows, and far past them
    "a" * 100,
    "b" * 101 + " end",
    "word " * 253 + "x",
    "word " * 509 + "x",
    "word " * 510,
    "word " * 511 + "never seen",
    PANGRAM * 12,
    (PANGRAM + "我们在北京。 " + "x" * 150 + " ") * 40,
]

# The number of texts with vectors, besides the last.
VECTORS = 12
# Our names of the models, the folder in fp32, the prefixes, the pooling and the window.
MODELS = {
    "all-MiniLM-L6-v2-int8": ("all-MiniLM-L6-v2", "", "", "mean", 256),
    "bge-small-en-v1.5-int8": ("bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", "", "first", 512),
    "e5-small-v2-int8": ("e5-small-v2", "query: ", "passage: ", "mean", 512),
}


def tokenizer(folder, window):
    t = Tokenizer.from_file(folder + "/tokenizer.json")
    t.no_padding()
    t.enable_truncation(window)
    return t


def embed(session, ids, pooling):
    ids = numpy.array([ids], dtype=numpy.int64)
    inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
    states = session.run(["last_hidden_state"], inputs)[0][0]
    vector = states.mean(axis=0) if pooling == "mean" else states[0]
    return [round(float(x), 5) for x in vector / numpy.linalg.norm(vector)]


def main():
    vectors = {}
    for name, (folder, query, passage, pooling, window) in MODELS.items():
        folder = sys.argv[1] + "/" + folder
        session, t = onnxruntime.InferenceSession(folder + "/model.onnx"), tokenizer(folder, window)
        vectors[name] = {
            kind: [embed(session, t.encode(prefix + text).ids, pooling) for text in TEXTS[:VECTORS] + TEXTS[-1:]]
            for kind, prefix in (("query", query), ("passage", passage))
        }
    t = tokenizer(sys.argv[1] + "/e5-small-v2", 512)
    ids = [{"text": text, "ids": t.encode(text).ids} for text in TEXTS]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in ids)
    print('{"tokens":[\n' + lines + '\n],\n"vectors":' + json.dumps(vectors, separators=(",", ":")) + "}")


if __name__ == "__main__":
    main()
