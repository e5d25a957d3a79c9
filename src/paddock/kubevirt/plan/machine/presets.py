"""VirtualMachineInstancePresets: hardware that instances with some labels get where they say nothing (docs/spec/kubevirt.md 1.1). Pure.

A preset is taken whole or not at all: one that contradicts the instance is left out, and the answer says so. Presets that contradict each
other are refused with the instance.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

import msgspec

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.schema.finding import Finding, Path, format_path
from paddock.kubevirt.kinds.preset import VirtualMachineInstancePreset

EXCLUDE = "virtualmachineinstancepresets.admission.kubevirt.io/exclude"
APPLIED = "virtualmachinepreset.kubevirt.io/"


class AppliedPresets(msgspec.Struct, frozen=True):
    """The hardware with the presets, the annotations that name them, what the answer tells, and what stands against all of it."""

    domain: Data
    annotations: dict[str, str]
    warnings: tuple[str, ...] = ()
    wrong: tuple[Finding, ...] = ()


def applied(metadata: Data, domain: Data, presets: Iterable[tuple[VirtualMachineInstancePreset, Data]]) -> AppliedPresets:
    """The presets that mean an instance, by name; each comes with its hardware as plain data."""
    made: Data = copied(domain)
    annotations: dict[str, str] = {}
    warnings = []
    if (metadata.get("annotations") or {}).get(EXCLUDE) == "true":
        return AppliedPresets(made, annotations)
    meant = [
        each for each in presets if each[0].spec is not None and selectors.matches(each[0].spec.selector, metadata.get("labels") or {})
    ]
    meant.sort(key=lambda each: each[0].metadata.name)
    if wrong := tuple(_contradictions(meant)):
        return AppliedPresets(made, annotations, wrong=wrong)
    for preset, hardware in meant:
        name = preset.metadata.name
        conflict = next(_conflicts(made, hardware, ("spec", "domain")), None)
        if conflict is not None:
            warnings.append(f"VirtualMachineInstancePreset {name} is not applied: {format_path(conflict)} has another value already")
            continue
        _fill(made, hardware)
        annotations[f"{APPLIED}{name}"] = "kubevirt.io/v1"
    return AppliedPresets(made, annotations, tuple(warnings))


def _contradictions(meant: list[tuple[VirtualMachineInstancePreset, Data]]) -> Iterator[Finding]:
    for (one, has), (other, wanted) in combinations(meant, 2):
        for path in _conflicts(has, wanted, ("spec", "domain")):
            names = f"presets '{one.metadata.name}' and '{other.metadata.name}'"
            why = f"the {names} say different things of it; change one of them, or the labels that both select"
            words = f"VirtualMachinePresets cannot be applied due to conflicts: {names} conflict: {format_path(path)}"
            yield Finding(path=path, message=f"Invalid value: {why}", rule="kubevirt/presets", words=words)


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
