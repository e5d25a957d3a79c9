"""The parts of a changed template that reach a running instance, and those that wait for a restart (docs/spec/kubevirt.md 2.9). Pure.

The spec of the last update of the instance is compared with the present one. Fields that can change while the guest runs are taken out
of both and compared with the instance itself; if anything else still differs, a restart is required, and the reason says why.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data, copied
from paddock.kubevirt.plan.machine.instances import POOL_REVISION

MIGRATION = "Migration"
OTHER = "a non-live-updatable field was changed in the template spec"
_PLACEMENT = ("nodeSelector", "affinity", "tolerations")
_EVICTION = ("descheduler.alpha.kubernetes.io/evict", "descheduler.alpha.kubernetes.io/prefer-no-eviction")
_PLUGGED = ("dataVolume", "persistentVolumeClaim", "memoryDump")


class LiveUpdate(msgspec.Struct, frozen=True):
    """A JSON patch of the instance (empty: nothing to do), and why a restart is required (empty: it is not).

    `metadata_waits`: labels or annotations of the template differ. They reach the next instance, and are no reason for a restart.
    """

    patch: tuple[Data, ...] = ()
    restart: str = ""
    metadata_waits: bool = False

    @property
    def is_complete(self) -> bool:
        """True if the instance is as the machine says once it is patched."""
        return not self.restart and not self.metadata_waits


class _Work:
    """One comparison: both templates, which lose what was dealt with, and what comes of it."""

    def __init__(self, before: Data, now: Data, instance: Data) -> None:
        self.before = copied(before)
        self.now = copied(now)
        self.instance = instance
        self.operations: list[Data] = []
        self.restart: list[str] = []
        # volumes that `volumemigration` moves to other claims
        self.moved: set[str] = set()

    def hardware(self) -> tuple[Data, Data]:
        return self.before["spec"], self.now["spec"]

    def wants(self, *path: str, value: Any) -> None:
        """Note a member of the instance that should have another value; None takes it away."""
        has: Any = self.instance
        for part in path:
            has = has.get(part) if isinstance(has, dict) else None
        if has == value:
            return
        place = "/" + "/".join(path)
        self.operations.append({"op": "remove", "path": place} if value is None else {"op": "add", "path": place, "value": value})


def update(before: Data, now: Data, instance: Data, *, live: bool = True) -> LiveUpdate:
    """Compare the machine's spec of the start with that of now. Without `live` (rollout strategy Stage) everything waits."""
    if any(before.get(each) != now.get(each) for each in ("instancetype", "preference")):
        return LiveUpdate(restart=OTHER)
    work = _Work(before["template"], now["template"], instance)
    if live and now.get("updateVolumesStrategy") == MIGRATION:
        _claims(work)
    for step in (_eviction, _placement, _sockets, _memory, _disks, _cards) if live else ():
        step(work)
    old, new = (_metadata(each) for each in (work.before, work.now))
    if work.before != work.now:
        work.restart.append(OTHER)
    if not work.restart and old == new:
        _pool_label(work, now["template"])
    return LiveUpdate(tuple(work.operations), work.restart[0] if work.restart else "", old != new)


def _metadata(template: Data) -> tuple[Data, Data]:
    """Take the labels and annotations out of a template, without the label that says which revision of a pool it is."""
    metadata = template.pop("metadata", None) or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POOL_REVISION}
    return labels, metadata.get("annotations") or {}


def _eviction(work: _Work) -> None:
    """What a descheduler reads is the one metadata that follows at once."""
    old, new = ((each.get("metadata") or {}).get("annotations") or {} for each in (work.before, work.now))
    has = work.instance["metadata"].get("annotations") or {}
    wanted = {key: value for key, value in has.items() if key not in _EVICTION}
    for key in _EVICTION:
        old.pop(key, None)
        if (value := new.pop(key, None)) is not None:
            wanted[key] = value
    work.wants("metadata", "annotations", value=wanted or None)


def _pool_label(work: _Work, template: Data) -> None:
    """The label that says which revision of a pool an instance was made from moves on when the instance is as that revision says."""
    wanted = ((template.get("metadata") or {}).get("labels") or {}).get(POOL_REVISION)
    if wanted is not None:
        work.wants("metadata", "labels", value={**(work.instance["metadata"].get("labels") or {}), POOL_REVISION: wanted})


def _placement(work: _Work) -> None:
    old, new = work.hardware()
    for name in _PLACEMENT:
        was, wanted = old.pop(name, None), new.pop(name, None)
        if was != wanted:
            work.wants("spec", name, value=wanted or None)


def _part(hardware: Data, *path: str) -> Data:
    place: Any = hardware
    for part in path:
        place = place.get(part) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else {}


def _sockets(work: _Work) -> None:
    old, new = (_part(each, "domain", "cpu") for each in work.hardware())
    if "sockets" not in old and "sockets" not in new:
        return
    old.pop("sockets", None)
    wanted = new.pop("sockets", 1)
    cpu = _part(work.instance["spec"], "domain", "cpu")
    has, most = cpu.get("sockets", 1), cpu.get("maxSockets") or 0
    if wanted < has:
        work.restart.append("Reduction of CPU socket count requires a restart")
    elif wanted > max(most, has):
        work.restart.append("CPU sockets updated in template spec to a value higher than what's available")
    elif wanted > has and cpu.get("dedicatedCpuPlacement"):
        work.restart.append("CPUs of its own are given to a machine when it starts: more CPU sockets require a restart")
    else:
        work.wants("spec", "domain", "cpu", "sockets", value=wanted)


def _memory(work: _Work) -> None:
    old, new = (_part(each, "domain", "memory") for each in work.hardware())
    if "guest" not in old or "guest" not in new:
        return
    old.pop("guest")
    wanted = new.pop("guest")
    memory = _part(work.instance["spec"], "domain", "memory")
    has, most = memory.get("guest"), memory.get("maxGuest")
    if has is not None and quantity.parse(wanted) == quantity.parse(has):
        # 1Gi is 1024Mi.
        return
    boot = _part(work.instance, "status", "memory").get("guestAtBoot") or has
    if boot is not None and quantity.parse(wanted) < quantity.parse(boot):
        work.restart.append("memory updated in template spec to a value lower than what the VM started with")
    elif most is None or quantity.parse(wanted) > quantity.parse(most):
        work.restart.append("memory updated in template spec to a value higher than what's available")
    else:
        work.wants("spec", "domain", "memory", "guest", value=wanted)


def _named(entries: list[Data] | None) -> dict[str, Data]:
    return {each.get("name", ""): each for each in entries or ()}


def _is_plugged(volume: Data) -> bool:
    return any((volume.get(kind) or {}).get("hotpluggable") for kind in _PLUGGED)


def _claims(work: _Work) -> None:
    """Volumes that are on another claim now move there, which is decided elsewhere."""
    old, new = (_named(each.get("volumes")) for each in work.hardware())
    work.moved = {name for name in old.keys() & new.keys() if is_claim(old[name]) and is_claim(new[name]) and old[name] != new[name]}
    for hardware in work.hardware():
        _drop(hardware, "volumes", lambda each: each.get("name", "") in work.moved)


def is_claim(volume: Data) -> bool:
    """Return whether a volume lies on a claim that can be named anew."""
    return any(volume.get(kind) is not None for kind in ("dataVolume", "persistentVolumeClaim"))


def _disks(work: _Work) -> None:
    """Volumes that say that they are hot-pluggable come and go with their disks."""
    sides = [_named(each.get("volumes")) for each in (*work.hardware(), work.instance["spec"])]
    names = {name for side in sides for name, volume in side.items() if _is_plugged(volume)} - work.moved
    # One that was there before it said so is no volume that can be pulled out.
    names -= {name for side in sides for name, volume in side.items() if name in names and not _is_plugged(volume)}
    old, new = (_named(_part(each, "domain", "devices").get("disks")) for each in work.hardware())
    # A drive comes and goes with a start; its medium does not. On the bus virtio it is a disk that is there from the start.
    drives = {name for name, each in {**new, **old}.items() if "cdrom" in each}
    names -= {name for name in drives if name not in old or old[name].get("cdrom", {}).get("bus") == "virtio"}
    if not names:
        return
    _exchange(work, (), "volumes", names, sides[1])
    if plugged := names - drives:
        _exchange(work, ("domain", "devices"), "disks", plugged, new)


def _cards(work: _Work) -> None:
    """Cards on bridges come and go with their networks, and every link goes up and down."""
    old, new = (_named(_part(each, "domain", "devices").get("interfaces")) for each in work.hardware())
    names = {name for name in old.keys() ^ new.keys() if "bridge" in (old.get(name) or new[name])}
    names -= {name for name in names if "pod" in (_network(work, name) or {"pod": None})}
    changed = {
        name: {**_stateless(new[name]), "state": new[name].get("state")} for name in old.keys() & new.keys() if _link(old, new, name)
    }
    if not names and not changed:
        return
    wanted = {**{name: new[name] for name in names if name in new}, **{name: _clean(each) for name, each in changed.items()}}
    _exchange(work, ("domain", "devices"), "interfaces", names | changed.keys(), wanted)
    if names:
        _exchange(work, (), "networks", names, _named(work.now["spec"].get("networks")))


def _network(work: _Work, name: str) -> Data | None:
    return next((found for each in work.hardware() if (found := _named(each.get("networks")).get(name)) is not None), None)


def _link(old: dict[str, Data], new: dict[str, Data], name: str) -> bool:
    """Return whether the state of a link is all that differs."""
    return old[name] != new[name] and _stateless(old[name]) == _stateless(new[name])


def _stateless(interface: Data) -> Data:
    return {key: value for key, value in interface.items() if key != "state"}


def _clean(entry: Data) -> Data:
    return {key: value for key, value in entry.items() if value is not None}


def _exchange(work: _Work, at: tuple[str, ...], member: str, names: set[str], entries: dict[str, Data]) -> None:
    """Bring the entries of these names in the instance to what is wanted, and take them out of the comparison."""
    has = _part(work.instance["spec"], *at).get(member) or [] if at else work.instance["spec"].get(member) or []
    kept: list[Data] = []
    for each in has:
        name = each.get("name", "")
        if name not in names:
            kept.append(each)
        elif name in entries:
            # Defaults that a device of the instance was given stay. A volume is one source, and its other sources go.
            kept.append(copied(entries[name]) if member == "volumes" else {**each, **entries[name]})
    there = {each.get("name", "") for each in has}
    kept += [copied(entries[name]) for name in entries if name in names and name not in there]
    work.wants("spec", *at, member, value=kept or None)
    for hardware in work.hardware():
        _drop(_part(hardware, *at) if at else hardware, member, lambda each: each.get("name", "") in names)


def _drop(parent: Data, member: str, falls: Callable[[Data], bool]) -> None:
    if member in parent:
        parent[member] = [each for each in parent[member] if not falls(each)]
        if not parent[member]:
            del parent[member]
