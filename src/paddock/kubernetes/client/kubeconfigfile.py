"""Changes of somebody's kubeconfig: the entries of one server are taken in and out, and all others stay as they are.

An entry that Paddock made has an extension with the directory of its server, so that nobody else's entry of that name is ever replaced. In
that of a context which became the current one stands the one before it, which returns with the removal.
Comments go, as they do when kubectl writes the file.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

from paddock.base import ownnames
from paddock.base.errors import Terminal, Transient

Document = dict[str, Any]
_EXTENSION = ownnames.SERVER.name
_KINDS = ("clusters", "users", "contexts")
_EMPTY: Document = {"apiVersion": "v1", "kind": "Config"}
# kubectl gives up after about as long.
_LOCK_SECONDS = 5.0


class KubeconfigConflict(Terminal):
    """An entry of the same name that belongs to something else."""


class UnreadableKubeconfig(Terminal):
    """A file that is no kubeconfig."""


def parse(text: str, name: str) -> Document:
    """Return the document of a kubeconfig. Raises `UnreadableKubeconfig`."""
    try:
        found = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise UnreadableKubeconfig(f"cannot read the kubeconfig {name}", why=" ".join(str(error).split())) from error
    if found is None:
        return dict(_EMPTY)
    lists = [found.get(kind) for kind in _KINDS] if isinstance(found, dict) else [0]
    if not all(each is None or (isinstance(each, list) and all(isinstance(one, dict) for one in each)) for each in lists):
        raise UnreadableKubeconfig(f"cannot read the kubeconfig {name}", why="it is no document of kind Config")
    return dict(found)


def merged(document: Document, server: Document, directory: str, *, name: str, use: bool) -> Document:
    """Return a kubeconfig with the entries of a server's own one, under a name; `use` makes it the current context.

    Raises `KubeconfigConflict` for an entry of that name that is not this server's.
    """
    _refuse_foreign(document, directory, name)
    found = without(document, directory)
    before = str(found.get("current-context") or "")
    # A server that was the current one stays it under its new name.
    becomes_current = use or not before or found.get("current-context") != document.get("current-context")
    for kind in _KINDS:
        (entry,) = server[kind]
        extension = {"directory": directory, **({"previous": before} if kind == "contexts" and becomes_current else {})}
        found[kind] = [*(found.get(kind) or ()), _named(kind, entry, name, extension)]
    if becomes_current:
        found["current-context"] = name
    return found


def without(document: Document, directory: str) -> Document:
    """Return a kubeconfig without the entries of the server of a directory; the context before its own is the current one again."""
    gone = {str(each["name"]): _previous(each) for each in document.get("contexts") or () if _directory(each) == directory}
    found = dict(document)
    for kind in _KINDS:
        if kind in document:
            found[kind] = [_after(each, gone) for each in document[kind] or () if _directory(each) != directory]
    if (current := found.get("current-context")) in gone:
        left = {each.get("name") for each in found.get("contexts") or ()}
        found["current-context"] = gone[current] if gone[current] in left else ""
    return found


def _refuse_foreign(document: Document, directory: str, name: str) -> None:
    for kind in _KINDS:
        for each in document.get(kind) or ():
            if each.get("name") == _entry(kind, name) and (owner := _directory(each)) != directory:
                fix = f"choose another name: `paddock ctx add --dir {directory} --as NAME`"
                raise KubeconfigConflict(
                    f'the kubeconfig has another "{name}"',
                    why=f"its {kind.removesuffix('s')} {each['name']} is {f'of the server of {owner}' if owner else 'not of Paddock'}",
                    fix=f"{fix}, or take that server out: `paddock ctx rm --dir {owner}`" if owner else fix,
                )


def _after(entry: Document, gone: Mapping[str, str]) -> Document:
    """Return an entry that remembers none of the contexts that go."""
    if (previous := _previous(entry)) not in gone:
        return entry
    content = {**entry["context"], "extensions": [_remembering(each, gone[previous]) for each in entry["context"]["extensions"]]}
    return {**entry, "context": content}


def _remembering(extension: Any, previous: str) -> Any:
    if not _is_ours(extension):
        return extension
    return {**extension, "extension": {**extension["extension"], "previous": previous}}


def contexts(document: Document) -> dict[str, str]:
    """Return the names of contexts by the directories of their servers, for those that Paddock made."""
    return {directory: str(each["name"]) for each in document.get("contexts") or () if (directory := _directory(each))}


def _named(kind: str, entry: Document, name: str, extension: Document) -> Document:
    member = kind.removesuffix("s")
    content = dict(entry[member])
    if kind == "contexts":
        content |= {"cluster": _entry("clusters", name), "user": _entry("users", name)}
    content["extensions"] = [{"name": _EXTENSION, "extension": extension}]
    return {"name": _entry(kind, name), member: content}


def _entry(kind: str, name: str) -> str:
    return f"{name}-admin" if kind == "users" else name


def _directory(entry: Document) -> str:
    return str(_extension(entry).get("directory") or "")


def _previous(entry: Document) -> str:
    return str(_extension(entry).get("previous") or "")


def _extension(entry: Document) -> Document:
    content: Document = next((entry[member] for member in ("cluster", "user", "context") if isinstance(entry.get(member), dict)), {})
    return next((dict(each["extension"]) for each in content.get("extensions") or () if _is_ours(each)), {})


def _is_ours(extension: Any) -> bool:
    return isinstance(extension, dict) and extension.get("name") == _EXTENSION and isinstance(extension.get("extension"), dict)


def read(path: Path) -> Document:
    """Return the document of a file; an empty one if there is no file."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return dict(_EMPTY)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableKubeconfig(f"cannot read the kubeconfig {path}", why=str(error)) from error


def rewrite(path: Path, change: Callable[[Document], Document]) -> bool:
    """Change a file in one step, and return whether it is another one now. A file of its own stays as readable as it was."""
    # Whoever keeps the file elsewhere keeps it there.
    path = path.resolve()
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _locked(path):
        before = read(path)
        after = change(before)
        if after == before:
            return False
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
            try:
                os.fchmod(file.fileno(), mode)
                yaml.dump(after, file, yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(file.name)
                raise
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that kubectl takes, too."""
    lock = path.with_name(f"{path.name}.lock")
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > end:
                raise Transient(f"another program is changing {path}", fix=f"try again; if there is none, remove {lock}") from None
        time.sleep(0.05)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
