"""Clients that come back too soon: each rejection (429) in a row asks for a longer pause."""

from http import HTTPStatus

from paddock.server.edge.http import Answer, HttpResponse

# A plain number, because each answer compares with it, and the enumeration's member is slower to look up.
_TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS.value
# The first request that is rejected asks for the pause that its answer names, each further one in a row for twice as much.
LONGEST_REST = 8


class Rejections:
    """The rejections in a row of one connection."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def note(self, answer: Answer) -> int:
        """Return the seconds for which the client is asked to wait; the answer asks for as many."""
        if not isinstance(answer, HttpResponse) or answer.status != _TOO_MANY:
            self._count = 0
            return 0
        asked = next((value for name, value in answer.headers if name == "retry-after"), "")
        if not asked.isdecimal() or not int(asked):
            return 0
        seconds = min(int(asked) << min(self._count, 8), max(int(asked), LONGEST_REST))
        self._count += 1
        answer.headers = tuple((name, str(seconds) if name == "retry-after" else value) for name, value in answer.headers)
        return seconds
