"""The directory of a server that names none, and the files in it by which other programs find a running server."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from paddock.base import variables
from paddock.base.errors import Terminal

KUBECONFIG, SERVER = "kubeconfig", "server.json"
_OF_ROOT = Path("/var/lib/paddock")
_PRODUCT = "paddock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,127}")
_NO_NAME = re.compile(r"[^a-z0-9.]+")


def default_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `$PADDOCK_DIR`, `/var/lib/paddock` for root, otherwise a directory below the user's own state."""
    if given := environ.get(variables.DIRECTORY.name):
        return Path(given)
    return _OF_ROOT if os.geteuid() == 0 else _of_user(environ)


def running_kubeconfigs(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the readable kubeconfigs of servers that run in default directories: root's first, then the user's."""
    given = environ.get(variables.DIRECTORY.name)
    for root in (Path(given),) if given else (_OF_ROOT, _of_user(environ)):
        if (root / SERVER).exists() and os.access(root / KUBECONFIG, os.R_OK):
            yield root / KUBECONFIG


def context_name(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the context in a server's kubeconfig: `paddock` for a default directory, otherwise with the directory's name."""
    if root in (_OF_ROOT, _of_user(environ)):
        return _PRODUCT
    named = root.parent if root.name == _PRODUCT else root
    word = _NO_NAME.sub("-", named.name.lower()).strip("-.")
    return f"{_PRODUCT}-{word}" if word and word != _PRODUCT else _PRODUCT


def checked_name(name: str) -> str:
    """Return a name of a context that somebody gave; empty: none was given. Raises `Terminal` for one that a shell would not take bare."""
    if name and not _NAME.fullmatch(name):
        raise Terminal(f"{name!r} is no name for a context", fix="use letters, digits and ._@:/-, and begin with a letter or a digit")
    return name


def _of_user(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "paddock"
