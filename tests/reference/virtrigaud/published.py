"""The documents that VirtRigaud publishes: in the YAML files of its module, and in the fenced blocks of its pages."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.kit.pages import blocks
from tests.reference import projects
from tests.reference.client import Json

GROUP = "infra.virtrigaud.io"
# Templates of charts are no YAML; the definitions are the judge.
_LEFT_OUT = ("charts", "config")


def documents() -> Iterator[tuple[str, Json]]:
    """Yield each document of VirtRigaud's group with its file, kind and name, as kubectl reads it."""
    for where, text in _texts(projects.fetched(projects.VIRTRIGAUD)):
        if GROUP not in text:
            continue
        for each in yaml.safe_load_all(text):
            if isinstance(each, dict) and str(each.get("apiVersion", "")).startswith(f"{GROUP}/"):
                metadata = each.setdefault("metadata", {})
                yield f"{where} {each['kind']} {metadata.get('name', 'without a name')}", each


def _texts(root: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root)
        if name.parts[0] in _LEFT_OUT:
            continue
        if file.suffix in (".yaml", ".yml"):
            yield str(name), file.read_text()
        elif file.suffix == ".md":
            for block in blocks(file):
                if block.language in ("yaml", "yml"):
                    yield f"{name}:{block.line}", block.text
