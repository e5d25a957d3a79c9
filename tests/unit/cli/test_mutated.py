"""Good manifests, broken at random: every command answers with findings, and never with an error of its own."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddock.dialects import translators as catalog
from tests.kit import examplefiles
from tests.unit.cli.commands import paddock

EXAMPLES: list[dict[str, Any]] = [
    document for file in examplefiles.examples() for document in yaml.load_all(file.read_bytes(), yaml.CSafeLoader) if document
]
STRANGE: list[Any] = [None, "", 0, -1, True, 3.5, 2**63, [], {}, "x", "ü", "10Gi", "a/b", [{}], ["a"], {"name": "x"}, "#cloud-config\n- a"]
ENVELOPE = (("apiVersion",), ("kind",))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path and path not in ENVELOPE:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def broken(document: dict[str, Any], random: Random) -> dict[str, Any]:
    """The document with one to three values gone, replaced, repeated or renamed."""
    document = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        path = random.choice([*places(document)])
        owner: Any = document
        for key in path[:-1]:
            owner = owner[key]
        chance = random.random()
        if chance < 0.5 and len(path) > 1:
            del owner[path[-1]]
        elif chance < 0.9:
            owner[path[-1]] = random.choice(STRANGE)
        elif isinstance(owner, list):
            owner.append(copy.deepcopy(owner[path[-1]]))
        else:
            owner[f"{path[-1]}x"] = owner.pop(path[-1])
    return document


def commands(old: str, new: str) -> Iterator[list[str]]:
    yield ["validate", "-f", new]
    yield ["validate", "--target", "cluster", "-f", new]
    yield ["render", "-f", new]
    yield ["diff", "-f", old, "-f", new]
    yield ["plan", "-f", new, "--against", old]
    for dialect in (*catalog.DIALECTS, catalog.HUB):
        yield ["convert", "--to", dialect, "-f", new]


# Each example runs in the same folder and overwrites the files of the one before.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_command_has_an_answer(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    chosen = random.sample(EXAMPLES, random.choice((1, 1, 2, 4)))
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("\n".join(json.dumps(document) for document in chosen))
    new.write_text("\n".join(json.dumps(broken(document, random)) for document in chosen))
    for command in commands(str(old), str(new)):
        assert paddock(*command).code in (0, 1), command
