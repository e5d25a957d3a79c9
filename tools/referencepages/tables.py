"""Tables of the reference."""

from collections.abc import Iterable, Iterator, Sequence

from tools.commandpages.markdown import cell


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join('---' for _ in titles)} |"
    yield from (f"| {' | '.join(cell(each) for each in row)} |" for row in rows)
    yield ""
