"""The error of an input that cannot be read, in the form every tool can jump to: `file:line:column: what; what to do`."""

from paddock.base.errors import Terminal


class UnreadableManifest(Terminal):
    """An input, or the rest of it, is not a manifest. Line and column count from 1; 0 when the whole input is meant."""

    def __init__(self, source: str, what: str, *, fix: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(what, fix=fix)
        self.source = source
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return f"{place}: {super().__str__()}"
