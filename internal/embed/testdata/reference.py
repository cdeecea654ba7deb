"""Writes reference.json: token ids and vectors by sentence-transformers.

Usage: python reference.py MODEL_DIR > reference.json
"""

import json
import sys

from sentence_transformers import SentenceTransformer

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
    # lengths: the limit of a word, of the window, and far past it
    "a" * 100,
    "b" * 101 + " end",
    "word " * 253 + "x",
    "word " * 254,
    "word " * 255 + "never seen",
    PANGRAM * 12,
    (PANGRAM + "我们在北京。 " + "x" * 150 + " ") * 40,
]


def main():
    model = SentenceTransformer(sys.argv[1], device="cpu")
    model.max_seq_length = 256
    backend = model.tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(256)
    cases = []
    for text in TEXTS:
        # One by one: no padding, so nothing depends on the other texts.
        vector = model.encode(text, normalize_embeddings=True)
        ids = backend.encode(text).ids
        cases.append({"text": text, "ids": ids, "vector": [round(float(x), 6) for x in vector]})
    print("[")
    print(",\n".join(json.dumps(c, ensure_ascii=True, separators=(",", ":")) for c in cases))
    print("]")


if __name__ == "__main__":
    main()
