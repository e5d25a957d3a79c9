"""`paddock apiserver`: the API server alone, without controllers, as a stand-in where tests need one."""

from paddock.app.server.start import start
from paddock.cli.console import Console

TEXT = "run the API server alone, without controllers"


def run(given: list[str], console: Console) -> int:
    """Start, and stay until told to stop."""
    return start("apiserver", TEXT, given, console)
