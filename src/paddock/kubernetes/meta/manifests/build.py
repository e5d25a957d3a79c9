"""Builds one document from the parser's events.

Our own reading of the events, for three reasons: words mean what they mean to kubectl (see `resolve`), every value knows its
place, and nothing that an input contains can hurt. Nesting is kept on a list of ours, not on the stack of the interpreter or
of C; aliases share what they point at and weigh as much as what they stand for.
"""

from typing import Any

import yaml

from paddock.kubernetes.meta.manifests import resolve
from paddock.kubernetes.meta.manifests.document import Document, Position, SourceMap, TextProblem
from paddock.kubernetes.meta.manifests.limits import ManifestLimits
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.scalars import BareWord

DUPLICATE_KEY = "yaml/duplicate-key"
KEY = "yaml/key"
NUMBER = "yaml/number"
TAG = "yaml/tag"
NOT_A_MAPPING = "yaml/not-a-mapping"

_NO_KEY: Any = object()
_MERGE: Any = object()
_STANDARD = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(("str", "int", "float", "bool", "null", "timestamp"))


class Counted:
    """The documents of an input, counted."""

    def __init__(self, source: str, limits: ManifestLimits) -> None:
        self.source = source
        self.limits = limits
        self.documents = 0

    def one_more(self, position: Position) -> None:
        self.documents += 1
        if self.documents > self.limits.documents:
            what = f"more than {self.limits.documents} documents in one input"
            raise UnreadableManifest(self.source, what, fix="split it into several files", line=position.line, column=position.column)


def place_of(mark: Any, base: Position) -> Position:
    """A mark of the parser as a place in the input; `base` is where the parser started."""
    return Position(mark.line + base.line, mark.column + (base.column if mark.line == 0 else 1))


class _Frame:
    """A mapping or a list that is being read."""

    __slots__ = ("anchor", "before", "data", "key", "key_mark", "mark", "merged", "places")

    def __init__(self, data: Any, places: Any, event: Any, before: int) -> None:
        self.data = data
        self.places = places
        self.mark = event.start_mark
        self.anchor = event.anchor
        # how many values the document had before this one
        self.before = before
        self.key: Any = _NO_KEY
        self.key_mark: Any = None
        self.merged: list[tuple[dict[str, Any], dict[str, Any]]] = []


class Builder:
    """Builds one document from the events up to its end."""

    def __init__(self, next_event: Any, base: Position, counted: Counted) -> None:
        self._next = next_event
        self._base = base
        self._counted = counted
        self._limits = counted.limits
        self._stack: list[_Frame] = []
        self._values = 0
        self._most = counted.limits.values
        # name -> value, place, how many values it is; None while it is being read
        self._anchors: dict[str, tuple[Any, SourceMap, int] | None] = {}
        self._problems: list[TextProblem] = []

    def document(self) -> Document | None:
        """Read the document; None when it is empty."""
        root: Any = None
        place: Any = None
        while True:
            event = self._next()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value = resolve.plain(event.value) if event.implicit[0] else self._scalar(event)
                at = SourceMap(event.start_mark, None, event.value)
                self._values += 1
                if event.anchor:
                    self._anchors[event.anchor] = (value, at, 1)
                if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
                    value = None
                    self._no_json(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._open(event)
                continue
            elif kind is yaml.AliasEvent:
                value, at = self._alias(event)
            elif kind is yaml.DocumentEndEvent:
                return self._finish(root, place)
            else:
                value, at = self._close()
            if self._values > self._most:
                self._check_size(at)
            if self._stack:
                self._attach(value, at, event)
            else:
                root, place = value, at

    def _finish(self, root: Any, source_map: SourceMap) -> Document | None:
        if not isinstance(root, dict) and root is not None:
            what = "a list" if isinstance(root, list) else "a single value"
            text = f"a manifest is a mapping (apiVersion, kind, metadata, ...), this document is {what}"
            self._problem(source_map.mark, Finding(path=(), message=text, rule=NOT_A_MAPPING))
        if root is None and not self._problems:
            return None
        data = root if isinstance(root, dict) else {}
        return Document(self._counted.source, data, source_map, self._base, tuple(self._problems))

    def _open(self, event: Any) -> None:
        """A mapping or a list begins."""
        if len(self._stack) >= self._limits.depth:
            position = place_of(event.start_mark, self._base)
            what = f"nested deeper than {self._limits.depth} levels"
            raise UnreadableManifest(self._counted.source, what, line=position.line, column=position.column)
        if event.tag is not None and event.tag not in ("!", f"{_STANDARD}map", f"{_STANDARD}seq"):
            self._bad_tag(event)
        frame = _Frame({}, {}, event, self._values) if type(event) is yaml.MappingStartEvent else _Frame([], [], event, self._values)
        self._values += 1
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(frame)

    def _close(self) -> tuple[Any, SourceMap]:
        """A mapping or a list ends."""
        frame = self._stack.pop()
        for data, places in frame.merged:
            for key, value in data.items():
                if key not in frame.data:
                    frame.data[key] = value
                    frame.places[key] = places[key]
        place = SourceMap(frame.mark, frame.places, "")
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.data, place, self._values - frame.before)
        return frame.data, place

    def _attach(self, value: Any, at: SourceMap, event: Any) -> None:
        """Put a value where it belongs: into its list, or as a key or under a key of its mapping."""
        frame = self._stack[-1]
        if type(frame.data) is list:
            frame.data.append(value)
            frame.places.append(at)
        elif frame.key is _NO_KEY:
            frame.key_mark = at.mark
            if type(value) is str:
                is_merge = value == "<<" and type(event) is yaml.ScalarEvent and event.implicit[0]
                frame.key = _MERGE if is_merge else value
            else:
                frame.key = self._key(value, at)
            if frame.key in frame.places:
                self._twice(frame)
        else:
            if frame.key is _MERGE:
                self._merge(frame, value, at)
            elif frame.key is not None:
                frame.data[frame.key] = value
                frame.places[frame.key] = (frame.key_mark, at)
            frame.key = _NO_KEY

    def _alias(self, event: Any) -> tuple[Any, SourceMap]:
        """Return the value of an alias. It is shared, not copied, and weighs as much as the original."""
        target = self._anchors.get(event.anchor, _NO_KEY)
        if target is None or target is _NO_KEY:
            position = place_of(event.start_mark, self._base)
            what = f"the alias *{event.anchor} stands inside of what it stands for"
            fix = "write the value out"
            if target is _NO_KEY:
                what, fix = f"the alias *{event.anchor} has no anchor &{event.anchor} before it", "write the value out, or add the anchor"
            raise UnreadableManifest(self._counted.source, what, fix=fix, line=position.line, column=position.column)
        value, place, count = target
        self._values += count
        return value, place

    def _merge(self, frame: _Frame, value: Any, at: SourceMap) -> None:
        """The value of a merge key: a mapping, or a list of them of which the first wins."""
        pairs: list[tuple[Any, Any]] = [(value, at)]
        if type(value) is list:
            pairs = list(zip(value, at.members or (), strict=True))
        if not pairs or not all(type(data) is dict for data, _ in pairs):
            text = 'the merge key << takes a mapping or a list of mappings; quote it if a key "<<" is meant'
            self._problem(frame.key_mark, Finding(path=self._path(), message=text, rule=KEY))
            return
        frame.merged.extend((data, place.members) for data, place in pairs)

    def _check_size(self, at: SourceMap) -> None:
        """Refuse an object with too many values; the objects in a list of objects count one by one."""
        stack, most = self._stack, self._limits.values
        what = f"more than {most} values in one object, aliases counted as often as they are used"
        if len(stack) > 1 and stack[0].key == "items" and type(stack[1].data) is list:
            start = stack[2].before if len(stack) > 2 else self._values
            if len(stack[1].data) > self._limits.documents:
                what = f"more than {self._limits.documents} objects in one list"
            elif self._values - start <= most:
                self._most = start + most
                return
        position = place_of(at.mark, self._base)
        raise UnreadableManifest(self._counted.source, what, fix="split it", line=position.line, column=position.column)

    def _scalar(self, event: Any) -> Any:
        """A scalar in quotes, or with a tag."""
        tag = event.tag
        if tag is None or tag == "!":
            return event.value
        name = tag.removeprefix(_STANDARD)
        if name == tag or name not in _SCALAR_TAGS:
            self._bad_tag(event)
            return event.value
        if name in ("str", "timestamp"):
            return event.value
        value = resolve.plain(event.value)
        if isinstance(value, BareWord):
            value = value.as_bool()
        wanted = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}[name]
        if type(value) not in wanted:
            self._problem(event.start_mark, finding.invalid(self._path(), event.value, f"is not of the type !!{name}", NUMBER))
        return value

    def _bad_tag(self, event: Any) -> None:
        tag = event.tag.replace(_STANDARD, "!!")
        text = f"the tag {tag} cannot stand in a manifest; remove it"
        self._problem(event.start_mark, Finding(path=self._path(), message=text, rule=TAG))

    def _no_json(self, event: Any) -> None:
        text = f"{event.value} is no number in JSON; quote it if a text is meant"
        self._problem(event.start_mark, Finding(path=self._path(), message=text, rule=NUMBER))

    def _key(self, value: Any, at: SourceMap) -> str | None:
        """The key that kubectl reads where no text stands; None when there is none."""
        if isinstance(value, BareWord):
            word = "true" if value.as_bool() else "false"
            text = f'kubectl reads the bare key {value} as "{word}"; quote it: "{value}"'
            self._problem(at.mark, finding.warning((*self._path(), word), text, KEY))
            return word
        if isinstance(value, int):
            word = str(value).lower()
            if word != at.word.lower():
                text = f'kubectl reads the key {at.word} as "{word}"; quote it: "{at.word}"'
                self._problem(at.mark, finding.warning((*self._path(), word), text, KEY))
            return word
        what = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"the word {at.word or 'null'}"
        hint = "is this a template that has to be rendered first?" if isinstance(value, dict) else "quote it"
        text = f"a key is a text, this one is {what}; {hint}"
        self._problem(at.mark, Finding(path=self._path(), message=text, rule=KEY))
        return None

    def _twice(self, frame: _Frame) -> None:
        first = place_of(frame.places[frame.key][0], self._base)
        text = f'the key "{frame.key}" stands twice, first at {first.line}:{first.column}; keep one of them'
        self._problem(frame.key_mark, Finding(path=self._path(), message=text, rule=DUPLICATE_KEY, cause=CauseType.DUPLICATE))

    def _path(self) -> Path:
        """Return the path of the current value."""
        parts: list[str | int] = []
        for frame in self._stack:
            if type(frame.data) is list:
                parts.append(len(frame.data))
            elif isinstance(frame.key, str):
                parts.append(frame.key)
        return tuple(parts)

    def _problem(self, mark: Any, finding: Finding) -> None:
        self._problems.append(TextProblem(place_of(mark, self._base), finding))
