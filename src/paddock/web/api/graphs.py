"""The picture of the objects around a machine. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.scene import ObjectPlace, texts
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines import facts, nics, parts, trees
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes.references import references
from paddock.web.answers.machine import WebGraph, WebGraphEdge, WebGraphNode, WebSnapshotPart
from paddock.web.answers.rows import State
from paddock.web.live import kindtable
from paddock.web.live import parts as liveparts

Named = Mapping[str, Data]
_SERVICES = kind_target("", "Service")
# Of these, the picture has nodes of its own.
_DRAWN = frozenset(("DataVolume", "PersistentVolumeClaim", "NetworkAttachmentDefinition", "VirtualMachine", "VirtualMachineInstance"))


def graph(machine: MachineView, around: tuple[Named, Named, Named], snapshots: Sequence[WebSnapshotPart]) -> WebGraph:
    """Return the picture. `around` has the claims, DataVolumes and Services of the namespace, by name."""
    picture = _Picture()
    claims, volumes, services = around
    top = guest = picture.add(machine.kind.target, machine.data, facts.of(machine).status, liveparts.place(machine))
    if machine.kind.front and machine.vm is not None:
        guest = picture.add(VM.target, machine.vm, texts(machine.vm, "status", "printableStatus"))
        picture.join(top, guest, "becomes")
    if machine.vmi is not None and machine.kind is not VMI:
        picture.join(guest, picture.add(VMI.target, machine.vmi, texts(machine.vmi, "status", "phase")), "runs as")
    _draw_disks(picture, machine, guest, claims, volumes)
    for nic in nics.listed(machine):
        if nic.network != nics.POD:
            picture.join(guest, picture.name("NetworkAttachmentDefinition", nic.network, machine.namespace), f"interface {nic.name}")
    for each in trees.services_of(machine, services.values()):
        picture.join(picture.add(_SERVICES, each, trees.service_state(each)), guest, "leads to")
    for kind, name, label in _references(machine):
        picture.join(top, picture.name(kind, name, machine.namespace), label)
    for snapshot in snapshots:
        state: State = {"ready": "good", "failed": "bad"}.get(snapshot.state, "waits")  # type: ignore[assignment]
        picture.join(picture.name("Snapshot", snapshot.name, machine.namespace, state, snapshot.state), top, "of")
    return WebGraph(nodes=list(picture.nodes.values()), edges=picture.edges)


def _draw_disks(picture: "_Picture", machine: MachineView, guest: str, claims: Named, volumes: Named) -> None:
    for disk in parts.disks(machine):
        if not disk.claim:
            picture.join(guest, picture.name("Disk", disk.name, machine.namespace, "unknown", disk.source), f"disk {disk.name}")
            continue
        claim, filler = claims.get(disk.claim), volumes.get(disk.claim)
        below = (
            picture.add(kindtable.CLAIMS, claim, texts(claim, "status", "phase"))
            if claim is not None
            else picture.name("PersistentVolumeClaim", disk.claim, machine.namespace, "bad", "missing")
        )
        if filler is not None:
            above = picture.add(kindtable.DATA_VOLUMES, filler, texts(filler, "status", "phase"))
            picture.join(above, below, "fills")
            below = above
        picture.join(guest, below, f"disk {disk.name}")


def _references(machine: MachineView) -> Iterable[tuple[str, str, str]]:
    """Yield the other objects that the user's object names, each once: classes, instancetypes, Secrets, networks of a dialect."""
    seen = set()
    for each in references(machine.kind.group, machine.kind.kind, machine.data):
        kind = each.to[0][1]
        if kind not in _DRAWN and (kind, each.name) not in seen:
            seen.add((kind, each.name))
            yield kind, each.name, ".".join(part for part in each.path[1:2] if isinstance(part, str))


class _Picture:
    """Nodes, each once, and edges."""

    def __init__(self) -> None:
        self.nodes: dict[str, WebGraphNode] = {}
        self.edges: list[WebGraphEdge] = []

    def add(self, target: Target[Data], data: Data, status: str, machine: str = "") -> str:
        """Add an object; return its id."""
        name, namespace = texts(data, "metadata", "name"), texts(data, "metadata", "namespace")
        state = verdict.of(ObjectPlace(target.group, target.kind, namespace, name), data).state
        return self._node(f"{target.qualified}/{name}", target.kind, (name, namespace), (state, status), machine)

    def name(self, kind: str, name: str, namespace: str, state: State = "unknown", status: str = "") -> str:
        """Add something that was not read; return its id."""
        return self._node(f"{kind}/{name}", kind, (name, namespace), (state, status), "")

    def join(self, one: str, other: str, label: str) -> None:
        self.edges.append(WebGraphEdge(from_=one, to=other, label=label))

    def _node(self, id: str, kind: str, place: tuple[str, str], state: tuple[State, str], machine: str) -> str:
        name, namespace = place
        made = WebGraphNode(id=id, kind=kind, name=name, namespace=namespace, state=state[0], status=state[1], machine=machine)
        self.nodes.setdefault(id, made)
        return id
