"""The contexts of servers in a person's kubeconfig: ~/.kube/config, or the first file of $KUBECONFIG."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from paddock.app.directory.paths import DataPaths
from paddock.base.directories import context_name, default_root
from paddock.base.errors import PaddockError, Terminal
from paddock.cli import confirming
from paddock.cli.console import Console
from paddock.kubernetes.client import kubeconfig, kubeconfigfile


def own_file(environ: Mapping[str, str]) -> Path:
    """The file that kubectl would write."""
    return kubeconfig.paths(environ)[0]


def name_in_file(root: Path, environ: Mapping[str, str]) -> str:
    """Return the name of a server's context in the file; "" if it is not there. The file may be the server's own."""
    target = own_file(environ)
    document = kubeconfigfile.read(target)
    if target.resolve() == DataPaths(root).kubeconfig.resolve():
        return str(document.get("current-context") or "")
    return kubeconfigfile.contexts(document).get(str(root), "")


def words(root: Path) -> str:
    """Return the command that takes a server in."""
    return "paddock ctx add" if root == default_root().absolute() else f"paddock ctx add --dir {shlex.quote(str(root))}"


def offer(root: Path, console: Console) -> None:
    """Ask a person at a terminal whether to take in a new server, and do it. A failure names the way, because the server runs."""
    if not confirming.answerable():
        return
    target = own_file(os.environ)
    if confirming.agreed(console, f'Add it to {target} as the context "{own_name(root)}"?', yes=False):
        try:
            add(root, target, console)
        except PaddockError as error:
            console.say(f"paddock: {error}")


def forget(root: Path, environ: Mapping[str, str]) -> None:
    """Take a server that is deleted out of the file, if it is there."""
    target = own_file(environ)
    if target.exists() and str(root) in kubeconfigfile.contexts(kubeconfigfile.read(target)):
        kubeconfigfile.rewrite(target, lambda document: kubeconfigfile.without(document, str(root)))


def add(root: Path, target: Path, console: Console, *, name: str = "", use: bool = False) -> None:
    """Take the server of a directory into a file: under a name, the name that it has there, or the one of its own kubeconfig."""
    places = DataPaths(root)
    if not places.kubeconfig.is_file():
        raise Terminal(f"there is no kubeconfig in {root}", fix="start a server there: `paddock up --detach`, with --dir if it has one")
    if target.resolve() == places.kubeconfig.resolve():
        raise Terminal(f"{target} is the server's own kubeconfig", why="$KUBECONFIG names it", fix="unset KUBECONFIG")
    server = kubeconfigfile.read(places.kubeconfig)
    name = name or kubeconfigfile.contexts(kubeconfigfile.read(target)).get(str(root)) or own_name(root)
    kubeconfigfile.rewrite(target, lambda document: kubeconfigfile.merged(document, server, str(root), name=name, use=use))
    used = kubeconfigfile.read(target).get("current-context") == name
    way = "it is the current context" if used else f"use it with `kubectl config use-context {name}`"
    console.out(f'took the server of {root} into {target} as "{name}"; {way}\n')


def own_name(root: Path) -> str:
    """Return the name of the context in the server's own kubeconfig; the one after the directory if there is none."""
    return str(kubeconfigfile.read(DataPaths(root).kubeconfig).get("current-context") or context_name(root))
