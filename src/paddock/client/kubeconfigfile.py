"""Changes of somebody's kubeconfig: the entries of one server are taken in and out, and all others stay as they are.

An entry that Paddock made has an extension with the directory of its server, so that nobody else's entry of that name is ever replaced.
Comments go, as they do when kubectl writes the file.
"""

import os
import time
from collections.abc import Callable, Iterator
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
    taken = [each for kind in _KINDS for each in document.get(kind) or () if each.get("name") == _entry(kind, name)]
    if any(_directory(each) != directory for each in taken):
        raise KubeconfigConflict(f'the kubeconfig has another "{name}"', fix="choose another name: `paddock ctx add --as NAME`")
    found = without(document, directory)
    for kind in _KINDS:
        (entry,) = server[kind]
        found[kind] = [*(found.get(kind) or ()), _named(kind, entry, name, directory)]
    if use or not found.get("current-context"):
        found["current-context"] = name
    return found


def without(document: Document, directory: str) -> Document:
    """Return a kubeconfig without the entries of the server of a directory."""
    gone = {each["name"] for each in document.get("contexts") or () if _directory(each) == directory}
    found = dict(document)
    for kind in _KINDS:
        if kind in document:
            found[kind] = [each for each in document[kind] or () if _directory(each) != directory]
    if found.get("current-context") in gone:
        found["current-context"] = ""
    return found


def contexts(document: Document) -> dict[str, str]:
    """Return the names of contexts by the directories of their servers, for those that Paddock made."""
    return {directory: str(each["name"]) for each in document.get("contexts") or () if (directory := _directory(each))}


def _named(kind: str, entry: Document, name: str, directory: str) -> Document:
    member = kind.removesuffix("s")
    content = dict(entry[member])
    if kind == "contexts":
        content |= {"cluster": _entry("clusters", name), "user": _entry("users", name)}
    content["extensions"] = [{"name": _EXTENSION, "extension": {"directory": directory}}]
    return {"name": _entry(kind, name), member: content}


def _entry(kind: str, name: str) -> str:
    return f"{name}-admin" if kind == "users" else name


def _directory(entry: Document) -> str:
    content: Document = next((entry[member] for member in ("cluster", "user", "context") if isinstance(entry.get(member), dict)), {})
    for each in content.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == _EXTENSION:
            return str((each.get("extension") or {}).get("directory") or "")
    return ""


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
