"""Objects inside objects (`x-kubernetes-embedded-resource`): their envelope is read and checked like that of any object."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

from paddock.base import names
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural.node import Trail, name_of

RULE = "structural/embedded"
_TEXTS = frozenset(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink", "creationTimestamp", "deletionTimestamp"))
_MAPS = ("labels", "annotations")
_LISTS = ("ownerReferences", "managedFields")
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
_KIND = re.compile(r"[a-zA-Z]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\Z", re.ASCII)
_WORDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


class EmbeddedNotes(Protocol):
    @property
    def broken(self) -> list[Finding]: ...
    def misplaced(self, trail: Trail) -> None: ...


def coerce(key: str, value: Any, trail: Trail, noted: EmbeddedNotes) -> Any:
    """A member of the envelope, in the form that every object has."""
    if key != "metadata":
        if not isinstance(value, str):
            noted.broken.append(_broken(trail, value, "must be a string"))
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        word = _WORDS.get(type(value), "value")
        noted.broken.append(_broken(trail, value, f"json: cannot unmarshal {word} into Go value of type v1.ObjectMeta"))
        return value
    made: dict[str, Any] = {}
    for member, said in value.items():
        if member in _TEXTS or member in _MAPS or member in _LISTS or member in _NUMBERS or member == "finalizers":
            wrong = unfit(member, said)
            if wrong:
                noted.broken.append(_broken(trail, value, wrong))
            elif said is not None:
                made[member] = without_nulls(member, said)
        else:
            noted.misplaced((trail, member))
    return made


def filled(metadata: Any, defaults: dict[str, Any]) -> Any:
    """The metadata of an embedded object with defaults, as far as these are members that metadata has."""
    if not isinstance(metadata, dict):
        return metadata
    known = (*_TEXTS, *_MAPS, *_LISTS, *_NUMBERS, "finalizers")
    return {**{key: value for key, value in defaults.items() if key in known}, **metadata}


def _broken(trail: Trail, value: Any, why: str) -> Finding:
    return finding.invalid((name_of(trail),), value, why, RULE)


def without_nulls(member: str, said: Any) -> Any:
    """A member of the metadata; a null among texts is an empty text."""
    if member in _MAPS:
        return {key: "" if value is None else value for key, value in said.items()}
    return ["" if each is None else each for each in said] if member == "finalizers" else said


def unfit(member: str, said: Any) -> str:
    """Return the reason why a member of the metadata cannot be read; empty when it can."""
    if said is None:
        return ""
    wanted, bad = "", None
    if member in _TEXTS and not isinstance(said, str):
        wanted, bad = "string", said
    elif member in _MAPS:
        wanted, bad = _unfit(said, dict, "map[string]string")
    elif member == "finalizers":
        wanted, bad = _unfit(said, list, "[]string")
    elif member in _LISTS and not (isinstance(said, list) and all(isinstance(each, dict) for each in said)):
        wanted, bad = "[]object", said
    elif member in _NUMBERS and type(said) is not int:
        wanted, bad = "int64", said
    if not wanted:
        return ""
    return f"json: cannot unmarshal {_WORDS.get(type(bad), 'null')} into Go struct field ObjectMeta.{member} of type {wanted}"


def _unfit(said: Any, form: type[list[Any]] | type[dict[str, Any]], name: str) -> tuple[str, Any]:
    if not isinstance(said, form):
        return name, said
    entries: Any = said.values() if isinstance(said, dict) else said
    return next((("string", each) for each in entries if each is not None and not isinstance(each, str)), ("", None))


def check(value: dict[str, Any], trail: Trail) -> Iterator[Finding]:
    """Yield the mistakes in the envelope of an embedded object."""
    version, kind = value.get("apiVersion"), value.get("kind")
    for key in ("apiVersion", "kind"):
        if not value.get(key):
            yield finding.required((name_of((trail, key)),), RULE)
    if isinstance(version, str) and version.count("/") > 1:
        yield finding.invalid((name_of((trail, "apiVersion")),), version, f"unexpected GroupVersion string: {version}", RULE)
    if isinstance(kind, str) and kind and _KIND.match(kind) is None:
        why = f"may have mixed case, but should otherwise match: {LABEL_1035}"
        yield finding.invalid((name_of((trail, "kind")),), kind, why, RULE)
    if isinstance(value.get("metadata"), dict):
        yield from _check_metadata(value["metadata"], (trail, "metadata"))


def _check_metadata(metadata: dict[str, Any], trail: Trail) -> Iterator[Finding]:
    for key in ("name", "generateName"):
        said = metadata.get(key)
        yield from (finding.invalid((name_of((trail, key)),), said, why, RULE) for why in names.wrong_segment(said or ""))
    for word in _MAPS:
        place = (name_of((trail, word)),)
        for key, text in (metadata.get(word) or {}).items():
            wrong = names.wrong_qualified(key if word == "labels" else key.lower())
            yield from (finding.invalid(place, key, why, RULE) for why in wrong)
            yield from (finding.invalid(place, text, why, RULE) for why in (names.wrong_label_value(text) if word == "labels" else ()))
    for each in metadata.get("finalizers") or ():
        yield from (finding.invalid((name_of((trail, "finalizers")),), each, why, RULE) for why in names.wrong_qualified(each))
