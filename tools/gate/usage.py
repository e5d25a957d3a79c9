"""Decides which files a test module of a long suite uses, and condenses their contents into a digest.

A module uses every file of the repository except those that cannot change its outcome: documents, the quick suites, other long suites,
other test modules of its own suite, the folders of dialects that neither the module nor a test file that it imports names, folders of
tests and tools from which it imports nothing and that it does not name, and, unless something of that starts the program, the modules of
src that it does not import. What is unknown counts as used.
"""

import hashlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath

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
_SOURCE = "src/"
# They note how tests end, and change nothing about it.
_OBSERVERS = ("tools/conformance/", "tools/gate/")
# A test that starts the program, or builds it, uses whatever that imports, and the names of commands and kinds decide what that is.
_STARTS = re.compile(
    rb'paddock\.app\b|bin/paddock|"paddock",|\btools[./](packages|container|demo)|\bmake (demo|setup|up)\b|requirements\.lock'
)
# Folders that a test uses if it names them and the folder below: "api" and "crds".
_NAMED = ("api/", "deploy/", "web/")
# What every test could import counts where it is imported; data of the kit counts for who imports from its folder.
_IMPORTED = ("tests", "tools")
_KIT = "tests/kit"
_TEXT = re.compile(rb"\"([^\"\n]*)\"")
_UNUSED_SUFFIXES = (".md",)
_UNUSED_NAMES = ("LICENSE", "gate.toml", "results.json", "passed.txt", ".gitignore", ".gitattributes")


def suite_of(module: str) -> str:
    """Return the folder of the suite that a test module belongs to."""
    return next((suite for suite in SUITES if module.startswith(suite)), f"{PurePosixPath(module).parent}/")


def files_used(module: str, files: Iterable[str], read: Read) -> list[str]:
    """Return those of the repository's files that a test module uses, sorted."""
    # One set for all modules: what is remembered of it is found again at once.
    known = files if isinstance(files, frozenset) and module in files else frozenset((module, *files))
    imported = frozenset(each for each in _imported(module, known, read) if not each.startswith(_OBSERVERS))
    own = [each for each in imported if not each.startswith(_SOURCE)]
    tests = [read(each) for each in own]
    unnamed = frozenset(DIALECTS).difference(*(_named(text) for text in tests))
    source = None if any(_starts(text) for text in tests) else frozenset(_source(imported, known, read, unnamed))
    folders, words = {_folder(each) for each in own}, frozenset[bytes]().union(*(_words(text) for text in tests))

    def is_used(file: str, home: str) -> bool:
        if file.startswith(_SOURCE):
            return not _dialects_of(file) & unnamed and (source is None or file in source)
        if file.startswith(_NAMED):
            return words.issuperset(part.encode() for part in file.split("/")[:2])
        return _is_beside(file, home, folders) or _is_named(file, words)

    return sorted(imported.union(file for file, home in _shared(known, suite_of(module)) if is_used(file, home)))


def digest(module: str, files: Iterable[str], read: Read, hashed: Callable[[str], str] | None = None) -> str:
    """Return a word that changes with every file that a test module uses."""
    hashed = hashed or (lambda file: hashlib.sha256(read(file)).hexdigest())
    listed = "".join(f"{each}\0{hashed(each)}\n" for each in files_used(module, files, read))
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


@cache
def _shared(known: frozenset[str], suite: str) -> tuple[tuple[str, str], ...]:
    """Return the files that a module of a suite may use without an import, each with the folder of the modules that it belongs to."""
    folders = {_folder(each) for each in known if each.endswith(".py")}
    return tuple((each, _home(each, folders)) for each in known if _is_shared(each, suite))


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _is_beside(file: str, home: str, folders: Container[str]) -> bool:
    """Return whether a file outside src belongs to a folder that a test imports from, or to none."""
    if home in _IMPORTED:
        return not file.endswith(".py")
    if f"{home}/".startswith(f"{_KIT}/"):
        return home in folders and not file.endswith(".py")
    return home in folders or not home


def _is_named(file: str, words: Container[bytes]) -> bool:
    """Return whether texts in the code of a test name a file or its folder."""
    path = PurePosixPath(file)
    return path.name.encode() in words or path.parent.name.encode() in words


@cache
def _words(text: bytes) -> frozenset[bytes]:
    """Return the parts of paths in the texts of a module."""
    return frozenset(part for found in _TEXT.findall(text) for part in found.split(b"/"))


def _is_shared(file: str, suite: str) -> bool:
    name = PurePosixPath(file).name
    if name.endswith(_UNUSED_SUFFIXES) or name in _UNUSED_NAMES:
        return False
    if file.startswith(suite):
        return not (name.startswith("test_") and name.endswith(".py"))
    return not file.startswith(_UNUSED)


@cache
def _dialects_of(file: str) -> frozenset[str]:
    """Return the dialects whose names a source file, or a folder around it, has."""
    path = PurePosixPath(file)
    return frozenset(DIALECTS).intersection((*path.parts, path.stem)) if path.parts[0] == "src" else frozenset()


@cache
def _named(text: bytes) -> frozenset[str]:
    lowered = text.lower()
    return frozenset(each for each in DIALECTS if each.encode() in lowered)


@cache
def _starts(text: bytes) -> bool:
    return _STARTS.search(text) is not None


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
        if file.endswith(".py") and not file.startswith(_SOURCE):
            waiting.extend(_uses(file, read(file), known))


def _source(imported: Iterable[str], known: frozenset[str], read: Read, unnamed: frozenset[str]) -> Iterator[str]:
    """Yield the files of src that are imported, that those import in their turn, and the data beside them."""
    waiting = [each for each in imported if each.startswith(_SOURCE)]
    seen = set(waiting)
    while waiting:
        file = waiting.pop()
        uses = (each for each in _uses(file, read(file), known) if each.startswith(_SOURCE))
        fresh = {each for each in uses if each not in seen and not _dialects_of(each) & unnamed}
        seen |= fresh
        waiting.extend(fresh)
    folders = {str(PurePosixPath(each).parent) for each in seen}
    yield from seen
    yield from (each for each, home in _data(known) if home in folders)


@cache
def _uses(file: str, source: bytes, known: frozenset[str]) -> frozenset[str]:
    """Return the files that a module imports or names."""
    if not file.endswith(".py"):
        return frozenset()
    names = {name.decode().rstrip(".") for name in _NAMES.findall(source)}
    found = set(_files_of((*_imports(source), *_packages(file), *names), known))
    below = tuple(f"{_path(name)}/" for name in names)
    return frozenset(found | {each for each in known if below and each.startswith(below) and _is_program(each)})


def _is_program(file: str) -> bool:
    return file.endswith(".py") and not PurePosixPath(file).name.startswith("test_")


def _path(name: str) -> str:
    """Return the path of a module without its suffix."""
    return f"{_SOURCE if name.partition('.')[0] in ('paddock', 'paddock_drivers') else ''}{name.replace('.', '/')}"


@cache
def _data(known: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return the files of src that are no modules, each with the folder of the modules that they belong to."""
    folders = {str(PurePosixPath(each).parent) for each in known if each.endswith(".py")}
    return tuple((each, _home(each, folders)) for each in known if each.startswith(_SOURCE) and not each.endswith(".py"))


def _packages(file: str) -> Iterator[str]:
    """Yield the packages around a module, which an import of it runs, too."""
    parts = PurePosixPath(file).parts[1:-1] if file.startswith(_SOURCE) else ()
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


# Modules that are run or imported by name: one, or the beginning of several, as in f"paddock.cli.commands.{name}".
_NAMES = re.compile(rb'"((?:paddock|paddock_drivers|tests|tools)(?:\.\w+)+\.?)["{]')


def _home(file: str, modules: Container[str]) -> str:
    """Return the folder with modules that a file of data belongs to."""
    return next((str(parent) for parent in PurePosixPath(file).parents if str(parent) in modules), "")


# A syntax tree of everything would take each process ten seconds. What only looks like an import, in a text, counts as one.
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]+)|import[ \t]+([^\n;]+))", re.MULTILINE)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(r"(?:^|,)[\s(\\]*([\w.]+)")


@cache
def _imports(source: bytes) -> tuple[str, ...]:
    """Return every imported name: `from a.b import c` gives `a.b.c`. Imports inside functions count."""
    found: list[str] = []
    for package, members, modules in _IMPORT.findall(_COMMENT.sub(b"", source)):
        prefix = f"{package.decode()}." if package else ""
        found.extend(f"{prefix}{name}" for name in _NAME.findall((members or modules).decode()))
    return tuple(found)


def _files_of(names: Iterable[str], known: frozenset[str]) -> Iterator[str]:
    """Yield the files of imported names; `from a.b import c` may mean the module `a.b.c` or a name in `a.b`."""
    for name in names:
        path = _path(name)
        above = PurePosixPath(path).parent
        for file in (f"{path}.py", f"{path}/__init__.py", f"{above}.py", f"{above}/__init__.py"):
            if file in known:
                yield file


def digests(modules: Iterable[str], files: Iterable[str], read: Read) -> Mapping[str, str]:
    """Return the digest of each test module; each file is read and hashed once."""
    once = cache(read)
    hashed = cache(lambda file: hashlib.sha256(once(file)).hexdigest())
    every = frozenset(modules)
    known = every.union(files)
    return {each: digest(each, known, once, hashed) for each in every}
