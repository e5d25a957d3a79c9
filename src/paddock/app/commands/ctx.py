"""`paddock ctx`: takes a server into ~/.kube/config, and out of it again."""

import os
from pathlib import Path

from paddock.app.directory import contexts, process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import KUBECONFIG, checked_name, default_root, running_kubeconfigs
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.kubernetes.client import kubeconfigfile

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


def run(argv: list[str], console: Console) -> int:
    """Carry out one of the actions."""
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.action not in _ACTIONS:
        options.error(f'"{parsed.action}" is none of {", ".join(_ACTIONS)}')
    if parsed.action != "add" and (parsed.name or parsed.use):
        options.error("--as and --use go with add")
    target = contexts.own_file(os.environ)
    if parsed.action == "ls":
        console.out(_table(target, parsed.dir))
        return 0
    root = (parsed.dir or default_root()).absolute()
    if parsed.action == "add":
        contexts.add(root, target, console, name=checked_name(parsed.name), use=parsed.use)
    elif target.exists() and kubeconfigfile.rewrite(target, lambda document: kubeconfigfile.without(document, str(root))):
        console.out(f"took the server of {root} out of {target}\n")
    else:
        console.say(f"paddock: {target} has no context of {root}")
    return 0


def _table(target: Path, explicit: Path | None) -> str:
    document = kubeconfigfile.read(target)
    known = kubeconfigfile.contexts(document)
    roots = [path.parent for path in running_kubeconfigs(os.environ)] + [Path(each) for each in known]
    if explicit is not None:
        roots.insert(0, explicit.absolute())
    rows = [("CONTEXT", "DIRECTORY", "SERVER", "IN THE FILE")]
    for root in dict.fromkeys(roots):
        found = process.find(DataPaths(root))
        name = known.get(str(root), "")
        here = "no" if not name else "yes, current" if document.get("current-context") == name else "yes"
        state = found.address if found is not None else "not running" if (root / KUBECONFIG).exists() else "gone"
        rows.append((name or contexts.own_name(root), str(root), state, here))
    if len(rows) == 1:
        return "no server runs in a default directory; start one with `paddock up --detach`\n"
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "".join("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)
