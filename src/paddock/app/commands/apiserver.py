"""`paddock apiserver`: starts the API server alone, for tests that need one."""

from paddock.app.server.start import start
from paddock.cli.console import Console

TEXT = """Start the API server alone, without controllers and without machines. It stands in for kube-apiserver and etcd in
tests. Options that kube-apiserver has, too, have the same name and meaning."""


def run(given: list[str], console: Console) -> int:
    """Start, and run until a signal ends the server."""
    return start("apiserver", TEXT, given, console)
