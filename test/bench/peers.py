"""Runs operations of mem0, LangGraph's PostgreSQL store and onnxruntime for the benchmark.

It reads one JSON object per line and answers each with one line: the seconds that the operation
took here and its result. The clock stops before the answer is encoded.
"""

import base64
import json
import os
import sys
import time

os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=os.environ["BENCH_DIR"], OPENAI_API_KEY="unused", ANONYMIZED_TELEMETRY="False")

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Model:
    """The model that Mnemo uses, on one thread of onnxruntime."""

    def __init__(self, folder):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options)
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(512)

    def vector(self, text):
        encoded = self.tokenizer.encode(text)
        feed = {
            "input_ids": np.array([encoded.ids], dtype=np.int64),
            "attention_mask": np.array([encoded.attention_mask], dtype=np.int64),
            "token_type_ids": np.array([encoded.type_ids], dtype=np.int64),
        }
        hidden = self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})[0][0]
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def embed(self, text, memory_action=None):
        """The interface of mem0's embedders."""
        return self.vector(("query: " if memory_action == "search" else "passage: ") + text).tolist()


def open_mem0(model):
    from mem0 import Memory
    from pymilvus import DataType, MilvusClient

    url, token, dims = os.environ["BENCH_MILVUS"], os.environ["BENCH_MILVUS_TOKEN"], 384
    name = os.environ["BENCH_COLLECTION"]
    client = MilvusClient(uri=url, token=token)
    # The schema before full-text search: the current one requires Milvus 2.5.
    for collection in (name, name + "_entities"):
        schema = client.create_schema(enable_dynamic_field=True)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=512)
        schema.add_field("vectors", DataType.FLOAT_VECTOR, dim=dims)
        schema.add_field("metadata", DataType.JSON)
        index = client.prepare_index_params()
        index.add_index(field_name="vectors", metric_type="COSINE", index_type="HNSW", params={"M": 16, "efConstruction": 200})
        client.create_collection(collection, schema=schema, index_params=index)
    memory = Memory.from_config({
        "vector_store": {"provider": "milvus", "config": {
            "collection_name": name, "url": url, "token": token, "embedding_model_dims": dims, "metric_type": "COSINE"}},
        "history_db_path": os.path.join(os.environ["BENCH_DIR"], "history.db"),
    })
    memory.embedding_model = model
    return memory, client


class Peers:
    def __init__(self):
        self.model = Model(os.environ["BENCH_MODEL"])
        self.memory, self.client = open_mem0(self.model)

        from langgraph.store.postgres import PostgresStore

        self.langgraph_context = PostgresStore.from_conn_string(os.environ["BENCH_POSTGRES"])
        self.langgraph = self.langgraph_context.__enter__()
        self.langgraph.setup()

    def embed(self, text, **_):
        return self.model.embed(text, "search") and None

    def mem0_load(self, user, texts, vectors=None, **_):
        """Fills mem0's collection with the rows that add() writes, without its per-memory cost.

        Vectors are in half precision and base64. Without them, the model computes them.
        """
        for first in range(0, len(texts), 500):
            batch = texts[first:first + 500]
            rows = [{"user_id": user, "data": t, "hash": "", "created_at": "2026-01-01T00:00:00+00:00"} for t in batch]
            if vectors is None:
                embedded = [self.model.embed(t, "add") for t in batch]
            else:
                embedded = [np.frombuffer(base64.b64decode(v), dtype="<f2").astype("f4").tolist() for v in vectors[first:first + 500]]
            self.memory.vector_store.insert([f"{user}-{first + i}" for i in range(len(batch))], embedded, rows)
        self.client.flush(self.memory.collection_name)

    def mem0_add(self, user, text, **_):
        return self.memory.add(text, user_id=user, infer=False)["results"][0]["id"]

    def mem0_search(self, user, text, limit, **_):
        return [r["memory"] for r in self.memory.search(text, filters={"user_id": user}, top_k=limit, threshold=0.0)["results"]]

    def mem0_list(self, user, limit, **_):
        return len(self.memory.get_all(filters={"user_id": user}, top_k=limit)["results"])

    def mem0_delete(self, id, **_):
        self.memory.delete(id)

    def langgraph_put(self, user, id, text, **_):
        self.langgraph.put(("memories", user), id, {"text": text})

    def langgraph_list(self, user, limit, **_):
        return len(self.langgraph.search(("memories", user), limit=limit))

    def langgraph_delete(self, user, id, **_):
        self.langgraph.delete(("memories", user), id)

    def close(self, **_):
        for name in (self.memory.collection_name, self.memory.collection_name + "_entities"):
            self.client.drop_collection(name)
        self.langgraph_context.__exit__(None, None, None)

    def peak(self, **_):
        """The resident memory of this process in bytes."""
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not become an answer
    answers = os.fdopen(out, "w", buffering=1)
    peers = Peers()
    answers.write('{"seconds": 0}\n')
    for line in sys.stdin:
        request = json.loads(line)
        operation = getattr(peers, request.pop("op"))
        began = time.perf_counter()
        try:
            result, error = operation(**request), ""
        except Exception as e:  # reported to the benchmark, which fails
            result, error = None, f"{type(e).__name__}: {e}"
        answers.write(json.dumps({"seconds": time.perf_counter() - began, "result": result, "error": error}) + "\n")


main()
