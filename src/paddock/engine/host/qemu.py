"""The abilities of a QEMU, detected once and cached as long as its file stays the same."""

import json
import os
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from paddock.engine.host.errors import HostError
from paddock.engine.host.subprocesses import run

_SECONDS = 60
_FORMAT = 2
# Properties of every device, and of the largest model alone, among those of a processor.
_NO_FEATURES = frozenset({"host-cache-info", "hotpluggable", "hotplugged", "legacy-cache", "migratable", "realized"})


class Qemu(Struct, frozen=True):
    """A QEMU program for one architecture."""

    architecture: str
    path: Path
    version: tuple[int, int, int]
    # every name of a machine type, aliases among them, with the name it stands for
    machines: dict[str, str] = field(default_factory=dict)
    devices: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    # the most processors of each machine type, by full name
    processors: dict[str, int] = field(default_factory=dict)
    # every feature of processors, and whether an emulated one can have it; empty: not known
    features: dict[str, bool] = field(default_factory=dict)

    def resolve(self, machine_type: str) -> str | None:
        """The full name of a machine type; None: it has none of that name."""
        return self.machines.get(machine_type)


async def inspect(architecture: str, path: Path, cache: Path) -> Qemu:
    """Return the abilities of the program. Cached in the folder `cache` as long as size and time of the file stay the same."""
    found = path.stat()
    key = [_FORMAT, str(path), found.st_size, found.st_mtime_ns]
    file = cache / f"qemu-{architecture}.json"
    known = _cached(file, key)
    if known is None:
        known = await _ask(path)
        _keep(file, key, known)
    return _read(architecture, path, known)


def _cached(file: Path, key: list[Any]) -> dict[str, Any] | None:
    try:
        document = json.loads(file.read_bytes())
        return dict(document["known"]) if document["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(file: Path, key: list[Any], known: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps({"key": key, "known": known}))
    new.replace(file)


def _read(architecture: str, path: Path, known: dict[str, Any]) -> Qemu:
    major, minor, micro = known["version"]
    return Qemu(
        architecture=architecture,
        path=path,
        version=(major, minor, micro),
        machines=dict(known["machines"]),
        devices=frozenset(known["devices"]),
        models=frozenset(known["models"]),
        processors=dict(known["processors"]),
        features=dict(known["features"]),
    )


async def _ask(path: Path) -> dict[str, Any]:
    largest = {"type": "full", "model": {"name": "max"}}
    lines: list[dict[str, Any]] = [
        {"execute": "qmp_capabilities"},
        {"execute": "query-version"},
        {"execute": "query-machines"},
        {"execute": "query-cpu-definitions"},
        {"execute": "qom-list-types", "arguments": {"implements": "device", "abstract": False}},
        # Not every architecture answers this one without a machine.
        {"execute": "query-cpu-model-expansion", "arguments": largest},
        {"execute": "quit"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    argv = [str(path), "-machine", "none", "-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-qmp", "stdio"]
    out, err, code = await run(argv, text.encode(), _SECONDS)
    try:
        answers = [json.loads(line) for line in out.splitlines()]
        _, version, machines, models, types, *rest = [answer["return"] for answer in answers if "return" in answer]
        number = version["qemu"]
        return {
            "version": [number["major"], number["minor"], number["micro"]],
            "machines": {name: each["name"] for each in machines for name in (each["name"], each.get("alias")) if name},
            "devices": sorted(each["name"] for each in types),
            "models": sorted(each["name"] for each in models),
            "processors": {each["name"]: each.get("cpu-max", 0) for each in machines},
            "features": _features(rest[0] if rest else {}),
        }
    except (ValueError, KeyError, TypeError) as error:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {code}"]
        raise HostError(f"cannot ask {path} what it can do", why=last[0], fix="check that this QEMU starts") from error


def _features(answer: dict[str, Any]) -> dict[str, bool]:
    """The features of the largest processor; an answer without any is that of `quit`."""
    properties = answer.get("model", {}).get("props", {})
    return {name: value for name, value in properties.items() if isinstance(value, bool) and name not in _NO_FEATURES}
