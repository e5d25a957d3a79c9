"""Decides which files a test module of a long suite uses, and condenses their contents into a digest.

A module uses every file of the repository except those that cannot change its outcome: documents, the quick suites, other long suites,
other test modules of its own suite, and the folders of dialects that neither the module nor a test file that it imports names. What is
unknown counts as used.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath

from tools.gate.imports import imported_modules

Read = Callable[[str], bytes]

# The dialects whose tests name them. KubeVirt's is under all of them, so it is always used.
DIALECTS = ("kubermatic", "stakater", "virtrigaud", "vitistack")
SUITES = ("tests/host/", "tests/reference/", "tests/scenario/")
_UNUSED = (
    "docs/",
    ".ci/",
    "tests/arch/",
    "tests/contract/",
    "tests/unit/",
    "tools/bench/",
    "tools/conformance/",
    "tools/gate/",
    "tools/kubevirtsupport/",
    *SUITES,
)
_UNUSED_SUFFIXES = (".md",)
_UNUSED_NAMES = ("LICENSE", "results.json", "passed.txt", ".gitignore", ".gitattributes")


def suite_of(module: str) -> str:
    """Return the folder of the suite that a test module belongs to."""
    return next((suite for suite in SUITES if module.startswith(suite)), f"{PurePosixPath(module).parent}/")


def files_used(module: str, files: Iterable[str], read: Read) -> list[str]:
    """Return those of the repository's files that a test module uses, sorted."""
    known = frozenset((module, *files))
    imported = frozenset(_imported(module, known, read))
    unnamed = _unnamed_dialects(read(each) for each in imported if each.startswith("tests/"))
    return sorted(each for each in known if each in imported or (_is_shared(each, suite_of(module)) and not _is_of(each, unnamed)))


def digest(module: str, files: Iterable[str], read: Read, hashed: Callable[[str], str] | None = None) -> str:
    """Return a word that changes with every file that a test module uses."""
    hashed = hashed or (lambda file: hashlib.sha256(read(file)).hexdigest())
    listed = "".join(f"{each}\0{hashed(each)}\n" for each in files_used(module, files, read))
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def _is_shared(file: str, suite: str) -> bool:
    """Return whether every module of a suite uses a file, as far as dialects do not matter."""
    name = PurePosixPath(file).name
    if name.endswith(_UNUSED_SUFFIXES) or name in _UNUSED_NAMES:
        return False
    if file.startswith(suite):
        return not (name.startswith("test_") and name.endswith(".py"))
    return not file.startswith(_UNUSED)


def _is_of(file: str, dialects: Iterable[str]) -> bool:
    """Return whether a source file is a module, or in a folder, with a dialect's name."""
    path = PurePosixPath(file)
    return path.parts[0] == "src" and any(each in path.parts or path.stem == each for each in dialects)


def _unnamed_dialects(texts: Iterable[bytes]) -> tuple[str, ...]:
    named = {each for text in texts for each in DIALECTS if re.search(each.encode(), text, re.IGNORECASE)}
    return tuple(each for each in DIALECTS if each not in named)


def _imported(module: str, known: frozenset[str], read: Read) -> Iterator[str]:
    """Yield a test module, the conftest files above it, and every file outside src that these import."""
    above = [f"{parent}/conftest.py" for parent in PurePosixPath(module).parents]
    waiting = [module, *(each for each in above if each in known)]
    seen: set[str] = set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        yield file
        if file.endswith(".py"):
            waiting.extend(_files_of(_imports(read(file)), known))


@cache
def _imports(source: bytes) -> tuple[str, ...]:
    return tuple(imported_modules(source.decode()))


def _files_of(names: Iterable[str], known: frozenset[str]) -> Iterator[str]:
    """Yield the files of imported names; `from a.b import c` may mean the module `a.b.c` or a name in `a.b`."""
    for name in names:
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py", f"{PurePosixPath(path).parent}.py"):
            if file in known:
                yield file


def digests(modules: Iterable[str], files: Iterable[str], read: Read) -> Mapping[str, str]:
    """Return the digest of each test module; each file is read and hashed once."""
    once = cache(read)
    hashed = cache(lambda file: hashlib.sha256(once(file)).hexdigest())
    known = list(files)
    return {each: digest(each, known, once, hashed) for each in set(modules)}
