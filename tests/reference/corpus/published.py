"""The manifests that the makers of the dialects publish, each file held to its digest.

Nothing of them is in this repository. KubeVirt's are in its module, which the Go module proxy serves. The others are read from clones
(`tests/reference/clones.py`), at the commits that `published.toml` names. `published.toml` also says which documents are refused, and why;
all others are taken. Stakater's page has the two documents of `paddock.dialects.stakater.examples`.
"""

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.kit.pages import blocks
from tests.reference import clones, projects

Json = dict[str, Any]
TABLE = Path(__file__).with_name("published.toml")
# Beside other projects' objects in the same files.
GROUPS = ("kubevirt.io", "vitistack.io", "k8c.io")


@dataclass(frozen=True)
class Source:
    """A module or a repository with the digests of its files."""

    name: str
    version: str
    files: dict[str, str]
    refused: dict[str, str]
    refused_by_server: dict[str, str]
    module: str = ""

    @property
    def clone(self) -> clones.Clone:
        """The commit that was judged."""
        return clones.Clone(self.name, self.version)

    def only(self, path: str) -> "Source":
        """The source with one of its files."""
        return replace(self, files={path: self.files[path]})

    def text(self, path: str) -> bytes:
        """The content of a file. Raises `NoClone`."""
        if self.module:
            return (projects.fetched(projects.Project(self.module, self.version, ())) / path).read_bytes()
        return self.clone.show(path)

    def documents(self, folder: Path) -> Iterator[tuple[str, Path, list[Json]]]:
        """Yield the files with manifests as `paddock validate` gets them, with their place and their documents; blocks of pages apart."""
        for path, digest in self.files.items():
            content = self.text(path)
            assert hashlib.sha256(content).hexdigest() == digest, f"{self.name} {path} is another file than the one that was judged"
            file = folder / path.replace("/", "_")
            file.write_bytes(content)
            if file.suffix != ".md":
                yield path, file, _documents(content.decode())
                continue
            for block in blocks(file):
                if block.language in ("yaml", "yml") and "apiVersion" in block.text:
                    part = file.with_name(f"{file.stem}-{block.line}.yaml")
                    part.write_text(block.text)
                    yield f"{path}:{block.line}", part, _documents(block.text)


def _documents(text: str) -> list[Json]:
    return [each for each in yaml.safe_load_all(text) if isinstance(each, dict)]


def is_theirs(document: Json) -> bool:
    """Return whether a document is of a maker's kinds."""
    return str(document.get("apiVersion", "")).partition("/")[0].endswith(GROUPS)


def sources() -> list[Source]:
    """The sources of the table."""
    return [
        Source(
            each["name"], each["version"], each["files"], each.get("refused", {}), each.get("refused_by_server", {}), each.get("module", "")
        )
        for each in tomllib.loads(TABLE.read_text())["source"]
    ]


def clone(repository: str) -> clones.Clone:
    """Return the commit of a repository whose manifests were judged."""
    (found,) = (each.clone for each in sources() if each.name == repository)
    return found
