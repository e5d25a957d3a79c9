"""A document: plain data, and the place where each value of it stands."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from paddock.kubernetes.schema.finding import Finding, Path


class Position(NamedTuple):
    """A place in a file; both count from 1."""

    line: int
    column: int


class TextProblem(NamedTuple):
    """Something that only the text shows, such as a key that stands twice: by now it is gone from the data."""

    position: Position
    finding: Finding


class SourceMap(NamedTuple):
    """The start of a value, and the places in it: of a mapping by key, of a list in order. Lines and columns count from 0.

    `word` is a scalar as it is written.
    """

    mark: Any
    members: "dict[str, tuple[Any, SourceMap]] | list[SourceMap] | None"
    word: str


class Document:
    """One document of an input. Pure data: bare words are `BareWord`s, keys are texts, everything else is as JSON has it."""

    __slots__ = ("_base", "_place", "data", "problems", "source")

    def __init__(self, source: str, data: Any, source_map: SourceMap, base: Position, problems: tuple[TextProblem, ...]) -> None:
        self.source = source
        self.data = data
        self.problems = problems
        self._place = source_map
        self._base = base

    def holding(self, data: Any) -> "Document":
        """Return other data with the places of this document, such as the object that a server makes of it."""
        return Document(self.source, data, self._place, self._base, ())

    @property
    def start(self) -> Position:
        """The start of the document."""
        return self._position(self._place.mark)

    def position(self, path: Path, *, of_key: bool = False) -> Position:
        """Return the position of the value at a path, or of its key; of the nearest value around it when there is no such value.

        The position of a list or mapping is that of its key, because it starts somewhere below it.
        """
        place, key = self._place, self._place.mark
        whole = True
        for part in path:
            found = _step(place, part)
            if found is None:
                whole = False
                break
            key, place = found
        at_value = whole and not of_key and place.members is None and place.word
        return self._position(place.mark if at_value else key)

    def written(self, path: Path) -> str | None:
        """The word that stands at a path, as it is written; None when there is none."""
        place = self._place
        for part in path:
            found = _step(place, part)
            if found is None:
                return None
            place = found[1]
        return None if place.members is not None else place.word

    def items(self, name: str) -> "Iterator[Document]":
        """The objects of a list of this document, each as a document of its own with its problems.

        What is wrong outside of all objects goes with the first.
        """
        own: dict[int, list[TextProblem]] = {}
        for problem in self.problems:
            path = problem.finding.path
            inside = path[:1] == (name,) and len(path) > 1 and isinstance(path[1], int)
            moved = msgspec.structs.replace(problem.finding, path=path[2:]) if inside else problem.finding
            own.setdefault(path[1] if inside else 0, []).append(problem._replace(finding=moved))  # type: ignore[arg-type]
        list_of = _step(self._place, name)
        for index, member in enumerate(self.data[name]):
            found = _step(list_of[1], index) if list_of else None
            data = member if isinstance(member, dict) else {}
            yield Document(self.source, data, found[1] if found else self._place, self._base, tuple(own.get(index, ())))

    def _position(self, mark: Any) -> Position:
        column = mark.column + (self._base.column if mark.line == 0 else 1)
        return Position(mark.line + self._base.line, column)


def _step(source_map: SourceMap, part: str | int) -> tuple[Any, SourceMap] | None:
    """The key and the value one step further down."""
    members = source_map.members
    if isinstance(members, dict):
        return members.get(str(part))
    if isinstance(members, list) and isinstance(part, int) and part < len(members):
        return members[part].mark, members[part]
    return None
