"""The findings of checks about one place of an object.

A finding carries the place as a path, the Kubernetes cause type and a message in the API's own form
(`Invalid value: "x": must be ...`), so that the API server, the offline commands and the controllers all say the same words.
"""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

Path = tuple[str | int, ...]


class Severity(StrEnum):
    """The weight of a finding: an error refuses the object, a warning is a `Warning:` header, a note is only information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class CauseType(StrEnum):
    """The cause types of a Kubernetes `Status`, as clients match on them."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found at one place. `rule` is the stable id that documentation and tests name.

    `path` is what the API calls the place. Where that is not where the document has it, `at` is the place in the document. `words` is what
    KubeVirt says of it, where programs look for just that.
    """

    path: Path
    message: str
    rule: str
    cause: CauseType = CauseType.INVALID
    severity: Severity = Severity.ERROR
    at: Path = ()
    words: str = ""

    @property
    def full_message(self) -> str:
        """The message with the field in front."""
        return f"{self.field}: {self.message}" if self.path else self.message

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it."""
        return format_path(self.path)

    @property
    def place(self) -> Path:
        """The place in the document."""
        return self.at or self.path


def format_path(path: Iterable[str | int]) -> str:
    """`("spec", "disks", 0, "name")` -> `spec.disks[0].name`; keys that are not plain words stand in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int) or (text and ("." in part or "/" in part or not part)):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def show(value: Any) -> str:
    """A value as a message shows it: JSON, cut when long."""
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        # Half a surrogate pair, which YAML and JSON escapes can write and UTF-8 cannot.
        text = json.dumps(value, default=str)
    return text if len(text) <= 120 else text[:100] + "..." + text[-1]


def invalid(path: Path, value: Any, why: str, rule: str, words: str = "") -> Finding:
    """A value that breaks a rule."""
    return Finding(path=path, message=f"Invalid value: {show(value)}: {why}", rule=rule, words=words)


def secret_invalid(path: Path, why: str, rule: str) -> Finding:
    """A value that breaks a rule and must not be repeated to anybody."""
    return Finding(path=path, message=f"Invalid value: {why}", rule=rule)


def required(path: Path, rule: str, why: str = "", words: str = "") -> Finding:
    """A value that has to be there."""
    message = f"Required value: {why}" if why else "Required value"
    return Finding(path=path, message=message, rule=rule, cause=CauseType.REQUIRED, words=words)


def unsupported(path: Path, value: Any, supported: Iterable[str], rule: str, hint: str = "") -> Finding:
    """A value outside a closed set."""
    known = ", ".join(f'"{word}"' for word in supported)
    text = f"Unsupported value: {show(value)}: supported values: {known}"
    return Finding(path=path, message=f"{text}; {hint}" if hint else text, rule=rule, cause=CauseType.NOT_SUPPORTED)


def duplicate(path: Path, value: Any, rule: str, why: str = "") -> Finding:
    """A value that stands twice where it must be unique."""
    text = f"Duplicate value: {show(value)}"
    return Finding(path=path, message=f"{text}: {why}" if why else text, rule=rule, cause=CauseType.DUPLICATE)


def forbidden(path: Path, why: str, rule: str) -> Finding:
    """A field that may not be given here."""
    return Finding(path=path, message=f"Forbidden: {why}", rule=rule, cause=CauseType.FORBIDDEN)


def too_many(path: Path, count: int, most: int, rule: str) -> Finding:
    """A list with more entries than allowed."""
    items = "item" if most == 1 else "items"
    return Finding(path=path, message=f"Too many: {count}: must have at most {most} {items}", rule=rule, cause=CauseType.TOO_MANY)


def too_long(path: Path, most: int, rule: str, what: str = "characters") -> Finding:
    """A text with more characters than allowed."""
    limit = "may not be" if what == "bytes" else "must be no"
    return Finding(path=path, message=f"Too long: {limit} more than {most} {what}", rule=rule, cause=CauseType.TOO_LONG)


def warning(path: Path, message: str, rule: str) -> Finding:
    """Something that is accepted and that the user should know."""
    return Finding(path=path, message=message, rule=rule, severity=Severity.WARNING)


def note(path: Path, message: str, rule: str) -> Finding:
    """Information without a judgement."""
    return Finding(path=path, message=message, rule=rule, severity=Severity.NOTE)
