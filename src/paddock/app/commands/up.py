"""`paddock up`: starts the control plane, in the foreground or in the background."""

from paddock.app.options import server
from paddock.app.server.start import start
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = """Start the control plane on this host: a Kubernetes-compatible API server, and the engine that runs machines with QEMU.
Everything it keeps is in one directory, including the kubeconfig."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return server.parser("up", TEXT)


def run(argv: list[str], console: Console) -> int:
    """Start, and run until a signal ends the server."""
    return start("up", TEXT, argv, console)
