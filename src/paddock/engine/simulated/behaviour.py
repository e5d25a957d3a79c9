"""The behaviour of a simulated guest, which annotations of its instance change. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

PREFIX = "simulated.paddock.dev/"
_LONGEST = 366 * 86400.0
_IMPORT_FAILURE = f"{PREFIX}import-failure"


class Behaviour(Struct, frozen=True):
    """The acts of a guest by itself, in seconds. None: never."""

    # from the start to a guest that runs
    start: float = 0.005
    # from a guest that runs, or was reset, to its agent
    boot: float = 0.02
    # from the power button to the end
    shutdown: float = 0.005
    agent: bool = True
    obeys_power: bool = True
    # why its starts fail; "": they succeed
    start_failure: str = ""
    panic_after: float | None = None
    crash_after: float | None = None
    shutdown_after: float | None = None
    reboot_after: float | None = None
    # how long the guest's memory takes to another node, and why it does not get there
    migration: float = 0.02
    migration_failure: str = ""


def read(annotations: Mapping[str, str]) -> Behaviour:
    """Return the behaviour that annotations ask for. Raises `ValueError` for one that is unknown or has no meaning."""
    changes: dict[str, Any] = {}
    for name, text in sorted(annotations.items()):
        if not name.startswith(PREFIX):
            continue
        known = _READERS.get(name.removeprefix(PREFIX))
        if known is None:
            names = ", ".join(sorted(_READERS))
            raise ValueError(f"the annotation {name} is unknown; known after {PREFIX} are: {names}")
        field, reader = known
        try:
            changes[field] = reader(text)
        except ValueError as error:
            raise ValueError(f'the annotation {name} has "{text}": {error}') from None
    return Behaviour(**changes)


def import_failure(annotations: Mapping[str, str]) -> str:
    """Return why the import into a claim with these annotations fails; empty: it succeeds."""
    for name in sorted(annotations):
        if name.startswith(PREFIX) and name != _IMPORT_FAILURE:
            return f"the annotation {name} means nothing on a claim; known there is {_IMPORT_FAILURE}"
    text = annotations.get(_IMPORT_FAILURE)
    return "" if text is None else text.strip() or f"the annotation {_IMPORT_FAILURE} gives no reason"


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _LONGEST:
        raise ValueError("write a number of seconds, such as 2.5")
    return found


def _word(*, true: str, false: str) -> Callable[[str], bool]:
    def read_word(text: str) -> bool:
        if text not in (true, false):
            raise ValueError(f"write {true} or {false}")
        return text == true

    return read_word


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("write the reason")
    return text.strip()


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "start-seconds": ("start", _seconds),
    "boot-seconds": ("boot", _seconds),
    "shutdown-seconds": ("shutdown", _seconds),
    "agent": ("agent", _word(true="present", false="absent")),
    "power-button": ("obeys_power", _word(true="obeyed", false="ignored")),
    "start-failure": ("start_failure", _text),
    "panic-after": ("panic_after", _seconds),
    "crash-after": ("crash_after", _seconds),
    "shutdown-after": ("shutdown_after", _seconds),
    "reboot-after": ("reboot_after", _seconds),
    "migration-seconds": ("migration", _seconds),
    "migration-failure": ("migration_failure", _text),
}
