#!/usr/bin/env python3
"""Prints an OpenAPI document for importers such as custom GPTs.

usage: action.py https://mnemo.example.com > action.json

The document is the server's /openapi.json, reduced to the operations an assistant
needs, with the server's address and descriptions of at most 300 characters.
"""

import json
import sys
import urllib.request

OPERATIONS = {
    "createMemory", "listMemories", "updateMemory", "listBuckets", "createBucket",
    "recall", "searchConversations", "getConversation",
}
LONGEST = 300


def shorten(node):
    """Truncates descriptions at the end of a sentence or word."""
    if isinstance(node, list):
        for item in node:
            shorten(item)
    elif isinstance(node, dict):
        text = node.get("description")
        if isinstance(text, str) and len(text) > LONGEST:
            head = text[:LONGEST]
            node["description"] = head[: head.rfind(". ") + 1] or head[: head.rfind(" ")]
        for item in node.values():
            shorten(item)


def references(node):
    """Yields the components referenced in a part of the document, as (section, name)."""
    if isinstance(node, list):
        return set().union(*map(references, node))
    if isinstance(node, dict):
        found, ref = set().union(*map(references, node.values())), node.get("$ref")
        return found | {tuple(ref.split("/")[2:])} if isinstance(ref, str) else found
    return set()


def action(document, url):
    paths = {}
    for path, item in document["paths"].items():
        kept = {m: op for m, op in item.items() if isinstance(op, dict) and op.get("operationId") in OPERATIONS}
        if kept:
            paths[path] = kept
    document["paths"], document["servers"] = paths, [{"url": url}]
    components, needed = document["components"], references(paths)
    while (more := needed | references([components[section][name] for section, name in needed])) != needed:
        needed = more
    document["components"] = {"securitySchemes": components["securitySchemes"]}
    for section, name in sorted(needed):
        document["components"].setdefault(section, {})[name] = components[section][name]
    shorten(document)
    return document


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    address = sys.argv[1].rstrip("/")
    with urllib.request.urlopen(address + "/openapi.json") as answer:
        json.dump(action(json.load(answer), address), sys.stdout, indent=2)
