"""Devices that a driver offers and that somebody claims (`resource.k8s.io/v1`). Stored for controllers that come from outside.

Nothing here allocates a device: a machine gets its host devices by KubeVirt's fields.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.builtin.tables import Cells, age_of, name_of
from paddock.server.kindtable import checking, table
from paddock.server.resources.strategy import CustomStrategy, Strategy, WriteContext

GROUP = "resource.k8s.io"
_RULE = "core/device"
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _complete(spec: Data) -> None:
    """One device, unless a request says otherwise."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        for each in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if isinstance(each, dict):
                mode = each.setdefault("allocationMode", "ExactCount")
                if mode == "ExactCount" and not each.get("count"):
                    each["count"] = 1


def _repeated(listed: Sequence[Data], path: Path) -> Iterator[Finding]:
    seen = set()
    for index, each in enumerate(listed):
        name = each.get("name") or ""
        if name in seen:
            yield finding.duplicate((*path, index), name, _RULE)
        seen.add(name)


def _wrong_requests(spec: Data, place: Path) -> Iterator[Finding]:
    requests = (spec.get("devices") or {}).get("requests") or ()
    yield from _repeated(requests, (*place, "devices", "requests"))
    for index, request in enumerate(requests):
        path = (*place, "devices", "requests", index)
        yield from _repeated(request.get("firstAvailable") or (), (*path, "firstAvailable"))
        forms = [name for name in ("exactly", "firstAvailable") if request.get(name)]
        why = "exactly one of `exactly` or `firstAvailable` is required"
        if not forms:
            yield finding.required(path, _RULE, why)
        elif len(forms) > 1:
            yield finding.invalid(path, None, f"{why}, but multiple fields are set", _RULE)
        alternatives = enumerate(request.get("firstAvailable") or ())
        for at, each in (((*path, "exactly"), request.get("exactly")), *(((*path, "firstAvailable", i), each) for i, each in alternatives)):
            count = (each or {}).get("count") or 0
            if each and each.get("allocationMode") == "All" and count:
                yield finding.invalid((*at, "count"), count, "must not be specified when allocationMode is 'All'", _RULE)
            elif each and each.get("allocationMode") == "ExactCount" and count < 0:
                yield finding.invalid((*at, "count"), count, "must be greater than zero", _RULE)


class ClaimStrategy(Strategy):
    """Keeps the spec of a claim as it is."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing was given. Patches of the status find it there."""
        new["status"] = {}
        return new

    def returns_deleted(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """One device of each class."""
        _complete(new.get("spec") or {})

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Requests, and no changes. Drivers and schedulers write the status."""
        yield from checking.check_member(table.message("resource/v1.ResourceClaim"), new, "status")
        if old is None:
            yield from _wrong_requests(new.get("spec") or {}, ("spec",))
        elif new.get("spec") != old.get("spec"):
            yield finding.invalid(("spec",), new.get("spec"), "field is immutable", _RULE)


class ClaimTemplateStrategy(ClaimStrategy):
    """As the claims that would be made of it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        return new

    def complete(self, new: Data) -> None:
        _complete((new.get("spec") or {}).get("spec") or {})

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        if old is None:
            yield from _wrong_requests((new.get("spec") or {}).get("spec") or {}, ("spec", "spec"))
        elif new.get("spec") != old.get("spec"):
            yield finding.invalid(("spec",), new.get("spec"), "field is immutable", _RULE)


class ClassStrategy(CustomStrategy):
    """Its generation is counted."""

    def returns_deleted(self) -> bool:
        return True


class SliceStrategy(ClassStrategy):
    """A slice says in one way which nodes reach its devices, and stays with its driver."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        given = [f"`{name}`" for name in _PLACES if spec.get(name)]
        why = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
        if not given:
            yield finding.required(("spec",), _RULE, why)
        elif len(given) > 1:
            yield finding.invalid(("spec",), f"{{{', '.join(given)}}}", f"{why}, but multiple fields are set", _RULE)
        yield from _repeated(spec.get("devices") or (), ("spec", "devices"))
        for path in (("driver",), ("nodeName",), ("pool", "name")) if old is not None else ():
            value, known = spec, before
            for part in path:
                value, known = (value or {}).get(part), (known or {}).get(part)
            if value != known:
                yield finding.invalid(("spec", *path), value, "field is immutable", _RULE)


def _claim_cells(data: Data, now: float) -> list[Any]:
    status, deleting = data.get("status") or {}, bool(data["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleting else []
    if status.get("allocation") is not None:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not deleting:
        states.append("pending")
    return [name_of(data), ",".join(states), age_of(data, now)]


def _slice_cells(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(data), spec.get("nodeName") or "", spec.get("driver", ""), pool, age_of(data, now)]


CELLS: dict[tuple[str, str], Cells] = {
    (GROUP, "ResourceClaim"): _claim_cells,
    (GROUP, "ResourceSlice"): _slice_cells,
}
STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "DeviceClass"): ClassStrategy(),
    (GROUP, "ResourceClaim"): ClaimStrategy(),
    (GROUP, "ResourceClaimTemplate"): ClaimTemplateStrategy(),
    (GROUP, "ResourceSlice"): SliceStrategy(),
}
