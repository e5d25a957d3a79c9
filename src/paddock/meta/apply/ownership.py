"""Interface."""

from typing import Any, NamedTuple


class Manager(NamedTuple):
    """A field manager: its name, the version its fields are said in, the subresource it writes."""

    name: str
    api_version: str
    subresource: str = ""


def record(live: dict[str, Any] | None, new: dict[str, Any], schema: dict[str, Any], manager: Manager, now: str) -> None: ...
def same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return new == old
