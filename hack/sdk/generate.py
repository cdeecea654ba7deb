"""Generates the models and the synchronous client of sdk/python.

usage: generate.py OPENAPI PACKAGE

PACKAGE is the directory of the Python package. Its synchronous client is its
asynchronous client without async and await.
"""

import json
import pathlib
import re
import sys
import tempfile

import black
from datamodel_code_generator.__main__ import main as generate_models

# The server checks its input, and a client must accept values of newer servers.
CONSTRAINTS = {"pattern", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "enum", "default"}

OPTIONS = """
    --input-file-type openapi --openapi-scopes schemas --output-model-type pydantic_v2.BaseModel
    --base-class mnemo._base.Model --snake-case-field --no-alias --target-python-version 3.10
    --use-standard-collections --use-union-operator --use-schema-description --use-field-description
    --disable-timestamp --formatters builtin
""".split()

HEADER = "# Generated from {source} by hack/sdk/generate.py. DO NOT EDIT.\n"

SYNC = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncGenerator\[(.*), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync(\w+)", r"\1"),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\b(?<=\.)a(close|read|iter_bytes|iter_lines)\b", r"\1"),
    (r"\baclosing\b", "closing"),
    (r"\banyio\b", "time"),
    (r"The asynchronous client\. The synchronous one is generated from it\.", "The synchronous client."),
]


def without_constraints(node):
    if isinstance(node, list):
        return [without_constraints(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: without_constraints(value)
        for name, value in node.items()
        if name not in CONSTRAINTS or isinstance(value, dict)
    }


def format_code(code):
    return black.format_str(code, mode=black.Mode(line_length=120))


def write_models(document, package):
    reduced = {"openapi": document["openapi"], "info": document["info"], "paths": {}}
    reduced["components"] = {"schemas": without_constraints(document["components"]["schemas"])}
    with tempfile.TemporaryDirectory() as work:
        source, target = pathlib.Path(work, "openapi.json"), pathlib.Path(work, "models.py")
        source.write_text(json.dumps(reduced))
        header = HEADER.format(source="api/openapi.json") + '"""The resources of the API."""\n'
        status = generate_models(["--input", str(source), "--output", str(target), "--custom-file-header", header, *OPTIONS])
        if status:
            sys.exit(int(status))
        (package / "models.py").write_text(format_code(target.read_text()))


def write_sync(package):
    for source in sorted((package / "_async").glob("*.py")):
        code = source.read_text()
        for pattern, replacement in SYNC:
            code = re.sub(pattern, replacement, code)
        target = package / "_sync" / source.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(format_code(HEADER.format(source=f"mnemo/_async/{source.name}") + code))


if __name__ == "__main__":
    openapi, package = map(pathlib.Path, sys.argv[1:])
    write_models(json.loads(openapi.read_text()), package)
    write_sync(package)
