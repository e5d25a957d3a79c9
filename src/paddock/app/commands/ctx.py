"""`paddock ctx`: takes a server into ~/.kube/config, and out of it again."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import KUBECONFIG, checked_name, context_name, default_root, running_kubeconfigs
from paddock.base.errors import PaddockError, Terminal
from paddock.cli import arguments, confirming
from paddock.cli.console import Console
from paddock.client import kubeconfig, kubeconfigfile

TEXT = """Show the servers of this host with their contexts in ~/.kube/config (or the first file of $KUBECONFIG). `paddock ctx add` takes
the server of a directory into that file, and `paddock ctx rm` takes it out."""
_ACTIONS = ("ls", "add", "rm")


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("ctx", TEXT, "[ls|add|rm] [OPTIONS]")
    action = options.add_argument("action", metavar="ls|add|rm", nargs="?", default="ls", help="Action (default: ls)")
    arguments.complete_with(action, _ACTIONS)
    arguments.add_directory(options)
    options.add_argument(
        "--as", dest="name", metavar="NAME", default="", help="With add: name of the context (default: as in the server's kubeconfig)"
    )
    options.add_argument("--use", action="store_true", help="With add: make it the current context")
    return options


def run(given: list[str], console: Console) -> int:
    """Carry out one of the actions."""
    options = parser()
    parsed = options.parse_args(given)
    if parsed.action not in _ACTIONS:
        options.error(f'"{parsed.action}" is none of {", ".join(_ACTIONS)}')
    if parsed.action != "add" and (parsed.name or parsed.use):
        options.error("--as and --use go with add")
    target = own_file(os.environ)
    if parsed.action == "ls":
        console.out(_table(target, parsed.dir))
        return 0
    root = (parsed.dir or default_root()).absolute()
    if parsed.action == "add":
        add(root, target, console, name=checked_name(parsed.name), use=parsed.use)
    elif target.exists() and kubeconfigfile.rewrite(target, lambda document: kubeconfigfile.without(document, str(root))):
        console.out(f"took the server of {root} out of {target}\n")
    else:
        console.say(f"paddock: {target} has no context of {root}")
    return 0


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
    if confirming.agreed(console, f'Add it to {target} as the context "{_name(root)}"?', yes=False):
        try:
            add(root, target, console)
        except PaddockError as error:
            console.say(f"paddock: {error}")


def own_file(environ: Mapping[str, str]) -> Path:
    """The file that kubectl would write."""
    return kubeconfig.paths(environ)[0]


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
    name = name or kubeconfigfile.contexts(kubeconfigfile.read(target)).get(str(root)) or _name(root)
    kubeconfigfile.rewrite(target, lambda document: kubeconfigfile.merged(document, server, str(root), name=name, use=use))
    used = kubeconfigfile.read(target).get("current-context") == name
    way = "it is the current context" if used else f"use it with `kubectl config use-context {name}`"
    console.out(f'took the server of {root} into {target} as "{name}"; {way}\n')


def _name(root: Path) -> str:
    """Return the name of the context in the server's own kubeconfig; the one after the directory if there is none."""
    return str(kubeconfigfile.read(DataPaths(root).kubeconfig).get("current-context") or context_name(root))


def _table(target: Path, given: Path | None) -> str:
    document = kubeconfigfile.read(target)
    known = kubeconfigfile.contexts(document)
    roots = [path.parent for path in running_kubeconfigs(os.environ)] + [Path(each) for each in known]
    if given is not None:
        roots.insert(0, given.absolute())
    rows = [("CONTEXT", "DIRECTORY", "SERVER", "IN THE FILE")]
    for root in dict.fromkeys(roots):
        found = process.find(DataPaths(root))
        name = known.get(str(root), "")
        here = "no" if not name else "yes, current" if document.get("current-context") == name else "yes"
        state = found.address if found is not None else "not running" if (root / KUBECONFIG).exists() else "gone"
        rows.append((name or _name(root), str(root), state, here))
    if len(rows) == 1:
        return "no server runs in a default directory; start one with `paddock up --detach`\n"
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "".join("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)
