"""Instancetypes and preferences: which ones a machine names, and what a machine is with them (docs/spec/kubevirt.md 7.5). Pure.

Works on plain data: most of it is "if nothing is there, put this". An instancetype sets, a preference fills what is open. Whoever
asks hands over how objects are found; a frozen copy (a ControllerRevision) is found before the object itself.
"""

import struct
from collections.abc import Callable, Iterable

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data, copied
from paddock.kubevirt.plan.machine import preferences

# resource as `plural.group`, namespace, name
Find = Callable[[str, str, str], Data | None]
GROUP = "instancetype.kubevirt.io"
API_VERSION = f"{GROUP}/v1beta1"
REVISIONS = "controllerrevisions.apps"
INSTANCETYPE, PREFERENCE = "instancetype", "preference"
# member of a machine's spec -> the kind everywhere, the kind of a namespace
KINDS = {
    INSTANCETYPE: ("VirtualMachineClusterInstancetype", "VirtualMachineInstancetype"),
    PREFERENCE: ("VirtualMachineClusterPreference", "VirtualMachinePreference"),
}
_OBJECT_VERSION = f"{GROUP}/object-version"
_DEFAULT_LABELS = {INSTANCETYPE: f"{GROUP}/default-instancetype", PREFERENCE: f"{GROUP}/default-preference"}
# Members of an instancetype's processors, and what they are called in a machine.
_PROCESSORS = (
    ("model", "model"),
    ("dedicatedCPUPlacement", "dedicatedCpuPlacement"),
    ("isolateEmulatorThread", "isolateEmulatorThread"),
    ("numa", "numa"),
    ("realtime", "realtime"),
    ("maxSockets", "maxSockets"),
    ("features", "features"),
)


class MissingInstancetype(Exception):
    """Something that a machine names is not there, or names nothing. `member` is the machine's, `why` for people."""

    def __init__(self, member: str, why: str) -> None:
        super().__init__(why)
        self.member = member
        self.why = why


class ResolvedInstancetype(msgspec.Struct, frozen=True):
    """An instancetype or a preference as a machine uses it. `revision` names the copy it was read from; empty: the object itself."""

    member: str
    kind: str
    name: str
    object: Data
    revision: str = ""

    @property
    def spec(self) -> Data:
        """The spec of the object."""
        spec: Data = self.object.get("spec") or {}
        return spec

    @property
    def everywhere(self) -> bool:
        """True if it is of cluster scope."""
        return self.kind == KINDS[self.member][0]


def kind_of(member: str, written: str | None) -> str | None:
    """The kind that a matcher means: singular, plural and any case will do, none means the kind of cluster scope. None: no such kind."""
    if not written:
        return KINDS[member][0]
    return next((kind for kind in KINDS[member] if written.lower().removesuffix("s") == kind.lower()), None)


def resource_of(kind: str) -> str:
    """Return the resource of a kind of this group, as `plural.group`."""
    return f"{kind.lower()}s.{GROUP}"


def find(member: str, spec: Data, namespace: str, lookup: Find, status: Data | None = None) -> ResolvedInstancetype | None:
    """The instancetype or preference of a machine with this spec; raises `MissingInstancetype`. The status tells which copy was kept."""
    matcher = spec.get(member) or {}
    name = matcher.get("name")
    if not name:
        return None
    kind = kind_of(member, matcher.get("kind"))
    if kind is None:
        raise MissingInstancetype(member, f"unknown kind {matcher['kind']}: use {' or '.join(KINDS[member])}")
    revision = matcher.get("revisionName") or _kept(member, name, kind, status)
    if revision:
        kept = lookup(REVISIONS, namespace, revision)
        if kept is not None:
            return ResolvedInstancetype(member, kind, name, kept.get("data") or {}, revision)
        if matcher.get("revisionName"):
            raise MissingInstancetype(member, f'Failure to find {member}: controllerrevisions.apps "{revision}" not found')
    resource = resource_of(kind)
    found = lookup(resource, "" if kind == KINDS[member][0] else namespace, name)
    if found is None:
        raise MissingInstancetype(member, f'Failure to find {member}: {resource} "{name}" not found')
    return ResolvedInstancetype(member, kind, name, {**found, "apiVersion": API_VERSION, "kind": kind})


def _kept(member: str, name: str, kind: str, status: Data | None) -> str:
    """The copy that the status names, as long as the machine still names the same object."""
    reference = (status or {}).get(f"{member}Ref") or {}
    if reference.get("name") != name or kind_of(member, reference.get("kind")) != kind:
        return ""
    return (reference.get("controllerRevisionRef") or {}).get("name") or ""


def revision_of(resolved_instancetype: ResolvedInstancetype, machine: Data, owner: Data) -> Data:
    """The ControllerRevision that keeps an instancetype or a preference for a machine."""
    meta, machine_meta = resolved_instancetype.object.get("metadata") or {}, machine["metadata"]
    uid, generation = meta.get("uid", ""), meta.get("generation", 1)
    name = f"{machine_meta['name']}-{resolved_instancetype.name}-v1beta1-{uid}-{generation}"
    kept = {key: meta[key] for key in ("name", "namespace", "uid", "generation", "labels", "annotations") if key in meta}
    labels = {
        "name": resolved_instancetype.name,
        "kind": resolved_instancetype.kind,
        "uid": uid,
        "generation": str(generation),
        "version": "v1beta1",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name if len(name) <= 253 else f"{machine_meta['uid']}-{uid}-{generation}",
            "namespace": machine_meta.get("namespace", "default"),
            # A name of more than a label's length says nothing there.
            "labels": {f"{GROUP}/object-{key}": value for key, value in labels.items() if len(value) <= 63},
            "ownerReferences": [owner],
        },
        "data": {"apiVersion": API_VERSION, "kind": resolved_instancetype.kind, "metadata": kept, "spec": resolved_instancetype.spec},
        "revision": 0,
    }


def copies(machine: Data) -> dict[str, str]:
    """The copies that were made for a machine: member -> name. One that the machine names itself is not its own."""
    spec, status = machine["spec"], machine.get("status") or {}
    own = (member for member in KINDS if spec.get(member) and not spec[member].get("revisionName"))
    named = {member: ((status.get(f"{member}Ref") or {}).get("controllerRevisionRef") or {}).get("name") for member in own}
    return {member: name for member, name in named.items() if name}


def unversioned(member: str, copy: Data) -> ResolvedInstancetype | None:
    """Return what a copy keeps that does not say its version, as those of KubeVirt's early releases; None where it says it."""
    kept = copy.get("data") or {}
    if _OBJECT_VERSION in (copy["metadata"].get("labels") or {}) or kept.get("apiVersion") != API_VERSION:
        return None
    return ResolvedInstancetype(member, kept["kind"], kept["metadata"]["name"], kept)


def annotations_of(resolved_instancetypes: Iterable[ResolvedInstancetype]) -> dict[str, str]:
    """The annotations by which a running machine says what it was made from."""
    return {f"kubevirt.io/{'cluster-' if each.everywhere else ''}{each.member}-name": each.name for each in resolved_instancetypes}


# --- inference ------------------------------------------------------------------------------------------------------------


def inferred(member: str, spec: Data, namespace: str, find: Find) -> Data | None:
    """Resolve a matcher that is inferred from a volume; None: it goes. Raises `MissingInstancetype` where a failure is refused."""
    matcher: Data = spec[member]
    label, volume = _DEFAULT_LABELS[member], matcher["inferFromVolume"]
    try:
        labels = _labels_of(member, volume, spec, namespace, find)
        if label not in labels:
            raise MissingInstancetype(member, f"unable to find required {label} label on the volume {volume}")
    except MissingInstancetype:
        if matcher.get("inferFromVolumeFailurePolicy") == "Ignore":
            return None
        raise
    return {"name": labels[label], "kind": labels.get(f"{label}-kind") or KINDS[member][0]}


def _labels_of(member: str, name: str, spec: Data, namespace: str, find: Find) -> dict[str, str]:
    volumes = spec["template"]["spec"].get("volumes") or ()
    volume = next((each for each in volumes if each.get("name") == name), None)
    if volume is None:
        raise MissingInstancetype(member, f"unable to find volume {name} to infer defaults")
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if claim:
        return _labels(_existing(member, "persistentvolumeclaims", namespace, claim, find))
    disk = (volume.get("dataVolume") or {}).get("name")
    if not disk:
        raise MissingInstancetype(member, f"unable to infer defaults from volume {name} as type is not supported")
    return _labels_of_disk(member, disk, spec, namespace, find)


def _labels_of_disk(member: str, disk: str, spec: Data, namespace: str, find: Find) -> dict[str, str]:
    label = _DEFAULT_LABELS[member]
    templates = spec.get("dataVolumeTemplates") or ()
    made = next((each for each in templates if (each.get("metadata") or {}).get("name") == disk), None)
    if made is None:
        made = find("datavolumes.cdi.kubevirt.io", namespace, disk)
    if made is None:
        return _labels(_existing(member, "persistentvolumeclaims", namespace, disk, find))
    if label in _labels(made):
        return _labels(made)
    source = made["spec"].get("source") or {}
    if reference := made["spec"].get("sourceRef"):
        place = reference.get("namespace") or namespace
        data_source = _existing(member, "datasources.cdi.kubevirt.io", place, reference.get("name", ""), find)
        if label in _labels(data_source):
            return _labels(data_source)
        source = data_source["spec"].get("source") or {}
        namespace = place
    if claim := source.get("pvc"):
        return _labels(_existing(member, "persistentvolumeclaims", claim.get("namespace") or namespace, claim.get("name", ""), find))
    raise MissingInstancetype(member, f"unable to infer defaults from DataVolume {disk}: it has neither labels nor a claim as its source")


def _existing(member: str, resource: str, namespace: str, name: str, find: Find) -> Data:
    found = find(resource, namespace, name)
    if found is None:
        raise MissingInstancetype(member, f'{resource} "{name}" not found')
    return found


def _labels(data: Data) -> dict[str, str]:
    return (data.get("metadata") or {}).get("labels") or {}


# --- expansion ------------------------------------------------------------------------------------------------------------


def expanded(hardware: Data, size: Data | None, wishes: Data | None) -> Data:
    """The spec of a running machine with an instancetype (`size`) set and a preference (`wishes`) filled in; a new value."""
    made: Data = copied(hardware)
    if size is not None:
        _set_size(made, size, wishes or {})
    if wishes is not None:
        preferences.fill(made, wishes)
    return made


def is_to_expand(policy: str | None, machine: Data) -> bool:
    """Return whether a machine is to say everything itself, as `referencePolicy` wants it: with `expand` one that has no copies yet."""
    spec, status = machine["spec"], machine.get("status") or {}
    if policy not in ("expand", "expandAll") or not any(spec.get(member) for member in KINDS):
        return False
    has_copies = any((status.get(f"{member}Ref") or {}).get("controllerRevisionRef") for member in KINDS)
    return policy == "expandAll" or not has_copies


def expanded_machine(machine: Data, resolved_instancetypes: Iterable[ResolvedInstancetype], binding: str = "bridge") -> Data:
    """A VirtualMachine that says everything itself, as `expand-spec` answers it: the references are gone."""
    specs = {each.member: each.spec for each in resolved_instancetypes}
    made: Data = copied(machine)
    template = made["spec"]["template"]
    template["spec"] = expanded(template["spec"], specs.get(INSTANCETYPE), specs.get(PREFERENCE))
    if specs.get(PREFERENCE) is not None:
        preferences.bind(template["spec"], binding)
    given: Data = {}
    for spec in specs.values():
        given = {**(spec.get("annotations") or {}), **given}
    if given:
        metadata = template["metadata"] = template.get("metadata") or {}
        metadata["annotations"] = {**given, **(metadata.get("annotations") or {})}
    for member in KINDS:
        made["spec"].pop(member, None)
    return made


def _set_size(made: Data, size: Data, wishes: Data) -> None:
    domain = made.setdefault("domain", {})
    given = size.get("cpu") or {}
    cpu = {**(domain.get("cpu") or {}), **topology(given.get("guest") or 1, wishes)}
    for theirs, ours in _PROCESSORS:
        if given.get(theirs) is not None:
            cpu[ours] = copied(given[theirs])
    domain["cpu"] = cpu
    _set_memory(domain, size.get("memory") or {})
    devices = domain.setdefault("devices", {})
    for name in ("gpus", "hostDevices"):
        if size.get(name):
            devices[name] = copied(size[name])
    for name in ("ioThreadsPolicy", "ioThreads", "launchSecurity"):
        if size.get(name) is not None:
            domain[name] = copied(size[name])
    for name in ("nodeSelector", "schedulerName"):
        if size.get(name):
            made[name] = copied(size[name])


def _set_memory(domain: Data, given: Data) -> None:
    memory = {**(domain.get("memory") or {}), "guest": given.get("guest", "0")}
    for name in ("hugepages", "maxGuest"):
        if given.get(name) is not None:
            memory[name] = copied(given[name])
    domain["memory"] = memory
    percent = given.get("overcommitPercent")
    if percent:
        resources = domain.setdefault("resources", {})
        resources["requests"] = {**(resources.get("requests") or {}), "memory": _overcommitted(memory["guest"], percent)}


def _overcommitted(guest: int | str, percent: int) -> str:
    """The request for so much memory less some percent, in single precision: KubeVirt reckons so, and its manifests are to be the same."""
    share = _single(1 - _single(_single(percent) / 100))
    size = int(_single(_single(quantity.whole(guest)) * share))
    return quantity.canonical(size * 1_000_000_000, in_binary=quantity.is_binary(guest))


def _single(value: float) -> float:
    """Round to single precision."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def topology(guest: int, wishes: Data) -> dict[str, int]:
    """Return the topology of so many vCPUs. A spread that does not come out even leaves all of them as sockets."""
    cpu = wishes.get("cpu") or {}
    # The older words are preferCores and the like.
    wanted = (cpu.get("preferredCPUTopology") or "sockets").removeprefix("prefer").lower()
    alone = {"cores": 1, "sockets": 1, "threads": 1}
    if wanted in ("cores", "threads"):
        return {**alone, wanted: guest}
    if wanted != "spread":
        return {**alone, "sockets": guest}
    options = cpu.get("spreadOptions") or {}
    ratio = options.get("ratio") or wishes.get("preferSpreadSocketToCoreRatio") or 2
    across = options.get("across") or "SocketsCores"
    threads = 1 if across == "SocketsCores" else 2
    cores = guest // threads if across == "CoresThreads" else ratio
    if cores < 1 or guest % (cores * threads):
        return {**alone, "sockets": guest}
    return {"sockets": guest // (cores * threads), "cores": cores, "threads": threads}
