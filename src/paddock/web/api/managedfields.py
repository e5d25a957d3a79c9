"""The record of who wrote which fields of an object last (`metadata.managedFields`), as paths that people read. Pure."""

import json
from collections.abc import Iterator

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts

Path = tuple[str, ...]


class FieldWrite(msgspec.Struct, frozen=True):
    """The fields that a manager wrote last in one way, and when it did so last."""

    manager: str
    operation: str
    subresource: str
    time: str
    paths: tuple[Path, ...]


def writes(data: Data) -> list[FieldWrite]:
    """Return the entries of the record, the newest first."""
    found = [
        FieldWrite(
            manager=texts(each, "manager"),
            operation=texts(each, "operation"),
            subresource=texts(each, "subresource"),
            time=texts(each, "time"),
            paths=tuple(leaves(at(each, "fieldsV1"))),
        )
        for each in entries(data, "metadata", "managedFields")
    ]
    return sorted(found, key=lambda each: each.time, reverse=True)


def leaves(fields: object, before: Path = ()) -> Iterator[Path]:
    """Yield the paths of a FieldsV1: `spec`, `volumes`, `[name=root]`, `name`."""
    if not isinstance(fields, dict):
        return
    below = {key: value for key, value in fields.items() if key != "."}
    if not below and before:
        yield before
    for key, value in below.items():
        yield from leaves(value, (*before, _part(key)))


def _part(key: str) -> str:
    sort, _, rest = key.partition(":")
    if sort == "f":
        return rest
    if sort == "k":
        try:
            keys = json.loads(rest)
        except ValueError:
            return f"[{rest}]"
        return f"[{','.join(f'{name}={value}' for name, value in keys.items())}]" if isinstance(keys, dict) else f"[{rest}]"
    return f"[{rest}]"


def shown(path: Path) -> str:
    """Return a path as people write it: `spec.volumes[name=root].name`."""
    text = ""
    for part in path:
        if part.startswith("["):
            text += part
        elif "." in part or "/" in part:
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
