"""Events: one collection, two shapes (docs/spec/kube-api.md section 7). The shape of the core group is the stored one."""

from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "events.k8s.io"
COLLECTION = "events"
_RULE = "core/event"
_TYPES = ("Normal", "Warning")
_LONGEST_NOTE, _LONGEST_NAME = 1024, 128
# The name in the core group -> the name in the other.
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_PLAIN = ("reason", "type", "reportingComponent")
# What field selectors may name, in either spelling, and where it stands in the stored form.
STORED_FIELDS = {
    **{f"regarding.{name}": f"involvedObject.{name}" for name in _ABOUT},
    "reportingController": "reportingComponent",
    "source": "source.component|reportingComponent",
}
SELECTABLE = (*(f"involvedObject.{name}" for name in _ABOUT), *_PLAIN, *STORED_FIELDS)


def to_stored(data: Data) -> Data:
    """An event of the newer shape in the stored one."""
    return _renamed(data, {new: old for old, new in _NAMES.items()})


def from_stored(data: Data) -> Data:
    """A stored event in the newer shape."""
    return _renamed(data, _NAMES)


def _renamed(data: Data, names: dict[str, str]) -> Data:
    return {names.get(key, key): value for key, value in data.items()}


class EventStrategy(Strategy):
    """Events of either shape; `new_shape` tells which."""

    def __init__(self, *, new_shape: bool) -> None:
        self._new_shape = new_shape

    def _name(self, name: str) -> str:
        """The name that a member of the core group has here."""
        return _NAMES.get(name, name) if self._new_shape else name

    def has_dependents(self) -> bool:
        """Nothing is ever owned by an event."""
        return False

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        return self._settled(new)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        return self._settled(new)

    def _settled(self, new: Data) -> Data:
        _settle(new, whole=(self._name("firstTimestamp"), self._name("lastTimestamp")), micro=("eventTime",))
        _settle(new.get("series"), micro=("lastObservedTime",))
        # Clients of the older shape read these without asking whether they are there.
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            new.setdefault(self._name(name) if name != "eventTime" else name, None)
        for name in (self._name("reportingComponent"), "reportingInstance"):
            new.setdefault(name, "")
        new.setdefault(self._name("source"), {})
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """An event is where its object is; one of the newer way says who tells, what and why."""
        if old is not None:
            return
        about = self._name("involvedObject")
        namespace = (new.get(about) or {}).get("namespace") or ""
        place = new["metadata"].get("namespace", "")
        if namespace != place and (namespace or place not in ("default", "kube-system")):
            yield finding.invalid((about, "namespace"), namespace, "does not match event.namespace", _RULE)
        if self._new_shape or new.get("eventTime"):
            yield from self._newer(new)

    def _newer(self, new: Data) -> Iterator[Finding]:
        if not new.get("eventTime"):
            yield finding.required(("eventTime",), _RULE)
        for name in (self._name("reportingComponent"), "reportingInstance", "action", "reason"):
            text = new.get(name) or ""
            if not text:
                yield finding.required((name,), _RULE)
            elif name != self._name("reportingComponent") and len(text) > _LONGEST_NAME:
                yield finding.invalid((name,), text, f"can have at most {_LONGEST_NAME} characters", _RULE)
        if new.get("type") not in _TYPES:
            yield finding.invalid(("type",), new.get("type") or "", f"has invalid value: must be one of {', '.join(_TYPES)}", _RULE)
        note = self._name("message")
        if len((new.get(note) or "").encode()) > _LONGEST_NOTE:
            yield finding.invalid((note,), "", f"can have at most {_LONGEST_NOTE} characters", _RULE)
        if self._new_shape:
            for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
                if new.get(_NAMES[name]):
                    yield finding.invalid((_NAMES[name],), new[_NAMES[name]], "needs to be unset", _RULE)


# What the resources of both shapes have in common.
SERVED: Data = {"selectable": SELECTABLE, "stored_fields": STORED_FIELDS, "create_on_update": True}
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "Event"): EventStrategy(new_shape=True)}


def _settle(data: dict[str, Any] | None, *, whole: tuple[str, ...] = (), micro: tuple[str, ...] = ()) -> None:
    """Rewrite these members, in place. What is no time is left for validation to find."""
    if not isinstance(data, dict):
        return
    for names, write in ((whole, ages.timestamp), (micro, ages.micro_timestamp)):
        for name in names:
            text = data.get(name)
            seconds = ages.seconds_of(text) if isinstance(text, str) else None
            if seconds is not None:
                data[name] = write(seconds)
