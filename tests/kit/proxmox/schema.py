"""The published API schema: which calls exist, and what is wrong with a call's parameters."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.kit.proxmox import formats
from tests.kit.proxmox.formats import Format, FormatError, Schema

# After JSON or a form is decoded: text, the entries of an array, or True and False of JSON.
Value = str | list[str] | bool
_FACTS = Path(__file__).with_name("facts.json")
_MISSING = "property is missing and it is not optional"
_UNKNOWN = "property is not defined in schema and the schema does not allow additional properties"


@dataclass(frozen=True)
class Call:
    """A method of a path."""

    method: str
    path: str
    parameters: Mapping[str, Schema]
    open: bool
    permission: Any
    token: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def property(self, name: str) -> Schema | None:
        """Return the schema of a parameter; scsi3 is one of scsi[n], within the bounds of its kind."""
        if name in self.parameters:
            return self.parameters[name]
        match = re.fullmatch(r"([a-z]+)(0|[1-9]\d*)", name)
        if match is None or int(match[2]) >= formats.INDEXED.get(match[1], 0):
            return None
        return self.parameters.get(f"{match[1]}[n]")

    def check(self, values: Mapping[str, Value]) -> dict[str, str]:
        """Return what is wrong, by parameter."""
        errors: dict[str, str] = {}
        for name, schema in self.parameters.items():
            if name not in values and not schema.get("optional") and not schema.get("alias"):
                errors[name] = _MISSING
        for name, value in values.items():
            found = self.property(name)
            if found is None:
                if not self.open:
                    errors[name] = _UNKNOWN
                continue
            if isinstance(needed := found.get("requires"), str) and needed not in values:
                errors[needed] = f"missing property required by '{name}'"
            check_value(name, found, value, errors)
        return errors


def check_value(name: str, schema: Schema, value: Value, errors: dict[str, str]) -> None:
    """Add what is wrong with a value."""
    kind = schema.get("type", "string")
    if kind == "array":
        for index, each in enumerate(value if isinstance(value, list) else [value]):
            check_value(f"{name}[{index}]", schema.get("items", {}), each, errors)
        return
    if isinstance(value, list):
        if not str(schema.get("format", "")).endswith("-list"):
            errors[name] = f"type check ('{kind}') failed - got ARRAY"
            return
        value = ",".join(value)
    if isinstance(value, bool):
        if kind != "boolean":
            errors[name] = f"type check ('{kind}') failed - got JSON::PP::Boolean"
        return
    if reason := _type_error(kind, value) or _format_error(schema, value) or _bound_error(schema, value):
        errors[name] = reason


def _type_error(kind: str, value: str) -> str:
    patterns = {"boolean": "[01]", "integer": r"[+-]?\d+", "number": r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?"}
    if kind in patterns and not re.fullmatch(patterns[kind], value):
        return f"type check ('{kind}') failed - got '{value}'"
    return ""


def _format_error(schema: Schema, value: str) -> str:
    if "format" not in schema:
        return ""
    try:
        _check_format(schema["format"], value)
    except FormatError as error:
        return f"invalid format - {error}\n"
    return ""


def _check_format(format: Any, value: str) -> None:
    if isinstance(format, Mapping):
        check_properties(format, value)
    elif format in formats.NAMED:
        check_properties(formats.NAMED[format], value)
    elif format == "pve-qm-ide":
        check_properties(drive_format("ide"), value)
    elif format.endswith("-list"):
        _check_each(format.removesuffix("-list"), formats.split_list(value))
    elif value or not format.endswith("-opt"):
        _check_each(format.removesuffix("-opt"), [value])


def _check_each(name: str, values: Sequence[str]) -> None:
    """Check values of a format; those that the simulator does not know, it takes."""
    if check := formats.CHECKS.get(name):
        for value in values:
            check(value)


def check_properties(format: Format, text: str) -> dict[str, str]:
    """Return the members of a property string; raise `FormatError` with all that is wrong, one a line."""
    members = formats.parse_properties(format, text)
    errors: dict[str, str] = {}
    for name, schema in format.items():
        if name not in members and not schema.get("optional") and not schema.get("alias"):
            errors[name] = _MISSING
    for name, value in members.items():
        if (needed := format[name].get("requires")) and needed not in members:
            errors[needed] = f"missing property required by '{name}'"
        check_value(name, format[name], value, errors)
    if errors:
        raise FormatError("format error\n" + "".join(f"{name}: {reason}\n" for name, reason in errors.items()).rstrip("\n"))
    return members


def _bound_error(schema: Schema, value: str) -> str:
    if (pattern := schema.get("pattern")) and not re.fullmatch(pattern, value):
        return "value does not match the regex pattern"
    if (most := schema.get("maxLength")) is not None and len(value) > int(most):
        return f"value may only be {most} characters long"
    if (least := schema.get("minLength")) is not None and len(value) < int(least):
        return f"value must be at least {least} characters long"
    if schema.get("type") in ("integer", "number"):
        if (most := schema.get("maximum")) is not None and float(value) > float(most):
            return f"value must have a maximum value of {most}"
        if (least := schema.get("minimum")) is not None and float(value) < float(least):
            return f"value must have a minimum value of {least}"
    if (words := schema.get("enum")) and value not in words:
        return f"value '{value}' does not have a value in the enumeration '{', '.join(words)}'"
    return ""


class Catalog:
    """All calls that the facts name."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.version = str(facts["version"])
        shared: Sequence[Schema] = facts["shared"]
        self.calls: dict[str, Call] = {}
        for name, call in facts["calls"].items():
            method, _, path = name.partition(" ")
            parameters = {each: shared[number] for each, number in call["parameters"].items()}
            self.calls[name] = Call(method, path, parameters, call["open"], call["permission"], call["token"])
        self._templates = sorted({call.path for call in self.calls.values()}, key=lambda path: path.count("{"))
        self._patterns = [(path, _compile(path)) for path in self._templates]

    def find(self, method: str, path: str) -> tuple[Call, dict[str, str]] | None:
        """Return the call and the values of its path."""
        for template, pattern in self._patterns:
            if match := pattern.fullmatch(path):
                call = self.calls.get(f"{method} {template}")
                return (call, match.groupdict()) if call else None
        return None

    def paths(self) -> Iterator[str]:
        """Yield the templates of all paths."""
        return iter(self._templates)


def _compile(template: str) -> re.Pattern[str]:
    return re.compile("/" + "/".join(_component(part) for part in template.split("/")[1:]))


def _component(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    # A volume's name has slashes of its own and stands last.
    return f"(?P<{part[1:-1]}>{'.+' if part == '{volume}' else '[^/]+'})"


@cache
def catalog() -> Catalog:
    """Return the calls of the committed facts."""
    return Catalog(json.loads(_FACTS.read_text(encoding="utf-8")))


def drive_format(interface: str, *, allocate: bool = True) -> Format:
    """Return the property string of a drive of scsi, virtio, ide, sata, efidisk or tpmstate."""
    members = _property(f"{interface}0" if interface in ("efidisk", "tpmstate") else f"{interface}[n]")
    return members if allocate else {key: each for key, each in members.items() if key != "import-from"}


def net_format() -> Format:
    """Return the property string of a network interface."""
    return _property("net[n]")


def _property(name: str) -> Format:
    found: Format = catalog().calls["POST /nodes/{node}/qemu"].parameters[name]["format"]
    return found
