"""Bytes in, documents out: YAML with one or more documents, JSON, and JSON values one after the other.

Built on the events of PyYAML's C parser; `build` makes the documents of them.
"""

from collections.abc import Iterator

import yaml
from yaml._yaml import CParser

from paddock.kubernetes.meta.manifests import jsontext
from paddock.kubernetes.meta.manifests.build import Builder, Counted, place_of
from paddock.kubernetes.meta.manifests.decode import decode, refuse_unprintable
from paddock.kubernetes.meta.manifests.document import Document, Position
from paddock.kubernetes.meta.manifests.limits import DEFAULT, ManifestLimits
from paddock.kubernetes.meta.manifests.syntax import unreadable

_START = Position(1, 1)


def load(data: bytes, source: str, limits: ManifestLimits = DEFAULT) -> Iterator[Document]:
    """The documents of an input, empty ones left out. Raises `Unreadable` where reading cannot go on.

    Documents come as they are read: those before a place that cannot be read are good.
    """
    text = jsontext.readable(decode(data, source, limits))
    counted = Counted(source, limits)
    try:
        yield from _segment(text, _START, counted)
    except _MoreJson as more:
        for part, base in jsontext.split(text, more.index):
            yield from _segment(part, base, counted)


class _MoreJson(Exception):
    """A JSON value follows another one without a separator."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def _segment(text: str, base: Position, counted: Counted) -> Iterator[Document]:
    """The documents of a text that is one YAML stream."""
    try:
        parser = CParser(text)
        while True:
            event = parser.get_event()
            if event is None:
                return
            if type(event) is yaml.DocumentStartEvent:
                mark = event.start_mark
                counted.one_more(place_of(mark, base))
                document = Builder(parser.get_event, base, counted).document()
                if document is not None:
                    yield document
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None and base == _START and jsontext.goes_on(text, mark.index):
            raise _MoreJson(mark.index) from None
        refuse_unprintable(text, counted.source)
        raise unreadable(error, text, counted.source, base) from None
