"""``python -m tools.cloudinitfacts SCHEMA``: writes what cloud-init reads, by its published schema, to `kubernetes/meta/cloudinit.json`.

SCHEMA is schema-cloud-config-v1.json of a cloud-init package. Names and kinds of values are taken, no text. A node is
``{"kinds": [...], "keys": {name: node}, "items": node}``; a mapping without "keys" takes any key.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "src" / "paddock" / "meta" / "cloudinit.json"
_KINDS = {"object": "mapping", "array": "list"}
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")
Node = dict[str, Any]


def facts(schema: Node) -> Node:
    """Return the node of a whole document."""
    found: Node = {}
    for name in schema["$defs"]:
        if name.startswith("cc_") or name in ("base_config", "reporting_config"):
            _join(found, _node(schema["$defs"][name], schema["$defs"]))
    return found


def _node(given: Node, definitions: Node) -> Node:
    found: Node = {}
    for each in _parts(given, definitions):
        types = each.get("type", ())
        kinds = {_KINDS.get(kind, "scalar") for kind in ([types] if isinstance(types, str) else types)}
        if "enum" in each or "const" in each:
            kinds.add("scalar")
        if "properties" in each:
            kinds.add("mapping")
        part: Node = {"kinds": sorted(kinds)} if kinds else {}
        if "properties" in each:
            part["keys"] = {name: _node(value, definitions) for name, value in each["properties"].items()}
        if isinstance(each.get("items"), dict):
            part["items"] = _node(each["items"], definitions)
        if each.get("patternProperties") or each.get("additionalProperties", False) not in (False,):
            part["open"] = True
        _join(found, part)
    return found


def _parts(given: Node, definitions: Node) -> Iterator[Node]:
    """A schema and all of its alternatives, without references."""
    if "$ref" in given:
        given = definitions[given["$ref"].rpartition("/")[2]]
    yield given
    for word in _ALTERNATIVES:
        for each in given.get(word, ()):
            yield from _parts(each, definitions)


def _join(found: Node, other: Node) -> None:
    if kinds := {*found.get("kinds", ()), *other.get("kinds", ())}:
        found["kinds"] = sorted(kinds)
    if other.get("open"):
        found["open"] = True
    for name, node in other.get("keys", {}).items():
        _join(found.setdefault("keys", {}).setdefault(name, {}), node)
    if "items" in other:
        _join(found.setdefault("items", {}), other["items"])


def main() -> int:
    made = facts(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    TARGET.write_text(json.dumps(made, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
