"""VirtualMachineInstancePresets: hardware that instances with some labels get where they say nothing (docs/spec/kubevirt.md 1.1). Pure.

A preset is taken whole or not at all: one that contradicts the instance, or a preset before it, is left out, and an event says so.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from paddock.base.jsondata import copied
from paddock.dialects.kubevirt.preset import VirtualMachineInstancePreset
from paddock.meta import selectors
from paddock.schema.finding import Path, format_path

Data = dict[str, Any]
EXCLUDE = "virtualmachineinstancepresets.admission.kubevirt.io/exclude"
APPLIED = "virtualmachinepreset.kubevirt.io/"


class AppliedPresets(msgspec.Struct, frozen=True):
    """The hardware with the presets, the annotations that name them, and the events."""

    domain: Data
    annotations: dict[str, str]
    told: tuple[str, ...] = ()


def applied(metadata: Data, domain: Data, presets: Iterable[tuple[VirtualMachineInstancePreset, Data]]) -> AppliedPresets:
    """The presets that mean an instance, by name; each comes with its hardware as plain data."""
    made: Data = copied(domain)
    annotations: dict[str, str] = {}
    told = []
    if (metadata.get("annotations") or {}).get(EXCLUDE) == "true":
        return AppliedPresets(made, annotations)
    for preset, hardware in sorted(presets, key=lambda each: each[0].metadata.name):
        name = preset.metadata.name
        if preset.spec is None or not selectors.matches(preset.spec.selector, metadata.get("labels") or {}):
            continue
        conflict = next(_conflicts(made, hardware, ("spec", "domain")), None)
        if conflict is not None:
            told.append(f"VirtualMachineInstancePreset {name} is not applied: {format_path(conflict)} has another value already")
            continue
        _fill(made, hardware)
        annotations[f"{APPLIED}{name}"] = "kubevirt.io/v1"
    return AppliedPresets(made, annotations, tuple(told))


def _conflicts(has: Data, wanted: Data, path: Path) -> Iterator[Path]:
    for key, value in wanted.items():
        if key not in has:
            continue
        if isinstance(value, dict) and isinstance(has[key], dict):
            yield from _conflicts(has[key], value, (*path, key))
        elif has[key] != value:
            yield (*path, key)


def _fill(has: Data, wanted: Data) -> None:
    for key, value in wanted.items():
        if isinstance(value, dict) and isinstance(has.get(key), dict):
            _fill(has[key], value)
        elif key not in has:
            has[key] = copied(value)
