"""`paddock up`: start the server, here or in the background."""

from paddock.app.server.start import start
from paddock.cli.console import Console

TEXT = "start the control plane on this host"


def run(given: list[str], console: Console) -> int:
    """Start, and stay until told to stop."""
    return start("up", TEXT, given, console)
