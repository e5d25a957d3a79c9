"""A body read as Go reads and writes it: unknown fields noted, types checked, zeros left out or shown, defaults filled in.

A field that a client leaves out, and one that it sets to the zero of a type without a pointer, are the same to Go. So the zero
goes first, and the default comes after it.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from paddock.base import base64data, quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.structural.node import Trail, clone, steps
from paddock.server.kindtable import table
from paddock.server.kindtable.table import MessageField, MessageType

UNKNOWN_FIELD = "kindtable/unknown-field"
TYPE = "kindtable/type"
_BITS = {"int32": 31, "int64": 63}
_WORDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", re.ASCII)
_MICRO_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_OPAQUE = frozenset(("Raw", "Json", "FieldsV1"))


class Misread(Exception):
    """A value that a field cannot hold."""


class BodyReader:
    """Reads one body and collects what is wrong with it."""

    def __init__(self) -> None:
        self.unknown: list[Finding] = []
        self.broken: list[Finding] = []

    def read(self, message_type: MessageType, raw: Data, trail: Trail = None, skipped: frozenset[str] = frozenset()) -> Data:
        """The message in `raw`; `skipped` members are somebody else's and stay as they are."""
        made: Data = {}
        fields = message_type.fields
        for name, value in raw.items():
            field = fields.get(name)
            if name in skipped:
                made[name] = value
            elif field is None:
                self.unknown.append(Finding(path=steps((trail, name)), message="unknown field", rule=UNKNOWN_FIELD))
            elif type(value) is field.exact:
                if value or field.pointer:
                    made[name] = value
            elif value is not None:
                self._member(field, value, (trail, name), made)
        for name, default in message_type.defaults.items():
            if name not in made:
                made[name] = clone(default)
                if isinstance(default, dict):
                    made[name] = self.read(fields[name].message, made[name])
        for name, message, zero in message_type.shown:
            if name not in made and name not in skipped:
                made[name] = zero if message is None else self.read(message, {})
        if message_type.name in _COMPLETIONS:
            _COMPLETIONS[message_type.name](made)
        return made

    def _member(self, field: MessageField, value: Any, trail: Trail, made: Data) -> None:
        try:
            read = self._value(field, value, trail)
        except Misread as wrong:
            self.broken.append(Finding(path=steps(trail), message=str(wrong), rule=TYPE, cause=CauseType.TYPE_INVALID))
            made[field.name] = value
            return
        if not field.plain:
            if read:
                made[field.name] = read
        elif field.is_kept or read not in ("", 0, False, None):
            made[field.name] = read

    def _value(self, field: MessageField, value: Any, trail: Trail) -> Any:
        if field.repeated:
            if not isinstance(value, list):
                raise _misread(value, f"[]{_go_type(field.type)}")
            if field.type == "string" and {*map(type, value)} <= {str}:
                return value.copy()
            return [self._entry(field, each, (trail, index)) for index, each in enumerate(value)]
        if field.mapped:
            if not isinstance(value, dict):
                raise _misread(value, f"map[string]{_go_type(field.type)}")
            if field.type == "string" and {*map(type, value.values())} <= {str}:
                return value.copy()
            return {key: self._entry(field, each, (trail, key)) for key, each in value.items()}
        return self._one(field, value, trail)

    def _entry(self, field: MessageField, value: Any, trail: Trail) -> Any:
        if value is None:
            return self.read(field.message, {}, trail) if field.is_message else ""
        return self._one(field, value, trail)

    def _one(self, field: MessageField, value: Any, trail: Trail) -> Any:
        if not field.is_message:
            return _scalar(field.type, value)
        if not isinstance(value, dict):
            raise _misread(value, _go_type(field.type))
        return self.read(field.message, value, trail)


def _misread(value: Any, wanted: str) -> Misread:
    return Misread(f"json: cannot unmarshal {_WORDS.get(type(value), 'value')} into Go value of type {wanted}")


def _go_type(kind: str) -> str:
    """The name that Go's errors have for a type: `v1.PodSpec` for `core/v1.PodSpec`."""
    return kind.rpartition("/")[2]


def _scalar(kind: str, value: Any) -> Any:
    if kind in _OPAQUE:
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise _misread(value, "bool")
        return value
    if kind in _BITS:
        return _whole(kind, value)
    if kind == "float64":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _misread(value, kind)
        return value
    if kind == "Quantity":
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not quantity.is_quantity(_shown(value)):
            raise Misread("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
        return str(quantity.respelled(_shown(value)))
    if kind == "Strings":
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise _misread(value, "[]string")
        return value
    if kind == "IntOrString":
        return value if isinstance(value, str) else _whole("int32", value)
    if not isinstance(value, str):
        raise _misread(value, "string")
    if kind in ("Time", "MicroTime"):
        return _time(value, micro=kind == "MicroTime")
    if kind == "bytes":
        return _bytes(value)
    return value


def _shown(value: float | str) -> int | str:
    return str(value) if isinstance(value, float) else value


def _whole(kind: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << _BITS[kind]) <= value < 1 << _BITS[kind]:
        raise _misread(value, kind)
    return value


def _bytes(value: str) -> str:
    try:
        base64data.decode(value)
    except ValueError:
        raise Misread("illegal base64 data") from None
    return base64data.unfolded(value)


def _time(value: str, *, micro: bool) -> str:
    if not _TIME.match(value):
        raise Misread(f'parsing time "{value}": must be a time in RFC 3339')
    try:
        moment = datetime.fromisoformat(value.upper())
        if (_MICRO_WRITTEN if micro else _WRITTEN).match(value):
            return value
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Misread(f'parsing time "{value}": out of range') from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if micro else moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def _complete_container(made: Data) -> None:
    made.setdefault("imagePullPolicy", _pull_policy(str(made.get("image") or "")))


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def _complete_pod(made: Data) -> None:
    account = made.get("serviceAccountName") or made.get("serviceAccount")
    if account:
        # Two names of one field.
        made["serviceAccountName"] = made["serviceAccount"] = account


def _complete_claim(made: Data) -> None:
    # It stands in another object, so nobody else says what it is.
    made.update(apiVersion="v1", kind="PersistentVolumeClaim", status={"phase": "Pending", **made["status"]})


def _complete_volume(made: Data) -> None:
    if len(made) == 1:
        made["emptyDir"] = {}


def _roll(message: str) -> Callable[[Data], None]:
    """Return a function that fills in the bounds of a replacement step by step."""

    def complete(made: Data) -> None:
        if made.get("type") == "RollingUpdate" and "rollingUpdate" not in made:
            made["rollingUpdate"] = BodyReader().read(table.message(message), {})

    return complete


# Defaults that follow from other fields of the same message.
_COMPLETIONS: dict[str, Callable[[Data], None]] = {
    "core/v1.Container": _complete_container,
    "core/v1.EphemeralContainer": _complete_container,
    "core/v1.PodSpec": _complete_pod,
    "core/v1.PersistentVolumeClaim": _complete_claim,
    "core/v1.Volume": _complete_volume,
    "apps/v1.DeploymentStrategy": _roll("apps/v1.RollingUpdateDeployment"),
    "apps/v1.StatefulSetUpdateStrategy": _roll("apps/v1.RollingUpdateStatefulSetStrategy"),
    "apps/v1.DaemonSetUpdateStrategy": _roll("apps/v1.RollingUpdateDaemonSet"),
}
