"""The server's warnings about what a person sent, on standard error."""

import logging

from paddock.base.lines import one_line
from paddock.cli.console import Console


class WarningPrinter(logging.Handler):
    """Prints the warnings that the client logs."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if text := getattr(record, "warning", ""):
            # 299 - "the text"
            self._console.say(one_line(f"Warning: {str(text).partition(chr(34))[2].rstrip(chr(34)) or text}"))


def show(console: Console) -> None:
    """Print the server's warnings from now on."""
    logging.getLogger("paddock.kubernetes.client.client").addHandler(WarningPrinter(console))
