"""`paddock envtest-assets`: writes the programs that controller-runtime's envtest starts (docs/testing/envtest.md).

`kube-apiserver` starts this server. `etcd` starts a process that reports health and stores nothing. `kubectl` is the installed one, if
any.
"""

import shlex
import shutil
import sys
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = """Write stand-ins for kube-apiserver, etcd and kubectl that controller-runtime's envtest starts, and print the
environment variable to set."""
_PROGRAMS = {"kube-apiserver": "paddock.app apiserver --bare", "etcd": "paddock.app.server.etcd"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("envtest-assets", TEXT, "[OPTIONS] DIR")
    options.add_argument("directory", type=Path, metavar="DIR", help="Directory to write to")
    return options


def run(argv: list[str], console: Console) -> int:
    """Write the programs and print how to use them."""
    folder: Path = parser().parse_args(argv).directory.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, module in _PROGRAMS.items():
            _write(folder / name, f"exec {shlex.quote(sys.executable)} -m {module}")
        kubectl = _kubectl(folder)
        if kubectl:
            _write(folder / "kubectl", f"exec {shlex.quote(kubectl)}")
    except OSError as error:
        raise Terminal(f"cannot write to {folder}", why=error.strerror or str(error)) from error
    console.out(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}\n")
    return 0


def _write(path: Path, command: str) -> None:
    # envtest waits for the process it starts, and ends that one: so the shell makes way.
    path.write_text(f'#!/bin/sh\n# Written by `paddock envtest-assets`.\n{command} "$@"\n')
    path.chmod(0o755)


def _kubectl(folder: Path) -> str:
    found = shutil.which("kubectl")
    # Not the one of an earlier run, which would call itself.
    return found if found and Path(found).absolute() != folder / "kubectl" else ""
