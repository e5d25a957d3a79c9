"""`paddock apiserver`: starts the API server alone, for tests that need one."""

from paddock.app.options import server
from paddock.app.server.start import start
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = """Start the API server alone, without controllers and without machines. It stands in for kube-apiserver and etcd in
tests. Options that kube-apiserver has, too, have the same name and meaning."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return server.parser("apiserver", TEXT)


def run(argv: list[str], console: Console) -> int:
    """Start, and run until a signal ends the server."""
    return start("apiserver", TEXT, argv, console)
