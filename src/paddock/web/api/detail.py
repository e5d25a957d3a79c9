"""`GET machines/PLACE`: everything about one machine."""

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import holds, texts
from paddock.fleet.machines import snapshots, trees, usage
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.writing import SUBRESOURCES
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target
from paddock.web import rights
from paddock.web.answers.machine import WebMachineDetail, WebSnapshotPart
from paddock.web.api import actionstates, graphs, guestparts, hardware, objectparts, pending, snapshottrees
from paddock.web.live import kindtable, machinerows
from paddock.web.routes import WebRequest, WebRoute

_NODES = kind_target("", "Node")
# A guest agent that does not answer must not hold the page up.
_AGENT_SECONDS = 5.0


async def detail(request: WebRequest) -> WebMachineDetail:
    session, machine = request.session, await request.machine()
    found = await gathered(session.server, machine)
    return msgspec.structs.replace(found, actions=await rights.judged(session.rights, machine, found.actions))


async def gathered(server: ServerSession, machine: MachineView) -> WebMachineDetail:
    """Read what belongs to a machine, and put it together."""
    client = server.client
    namespace = (machine.vm_key or machine.vmi_key or machine.key).namespace
    around, kept, waiting, report, node, used = await asyncio.gather(
        trees.surroundings(client, namespace),
        snapshot_parts(client, machine, namespace),
        pending.gathered(server, machine),
        _report(client, machine),
        _node(client, machine),
        usage.claim_bytes(client, namespace),
    )
    is_paddock = await client.is_paddock()
    claims, volumes, _ = around
    return WebMachineDetail(
        row=machinerows.row(machine),
        made=objectparts.made_of(machine),
        run_strategy=objectparts.run_strategy(machine),
        firmware=objectparts.firmware(machine),
        machine_type=objectparts.machine_type(machine),
        accelerator=objectparts.accelerator(machine, node),
        objects=list(objectparts.objects(machine, claims, volumes)),
        disks=list(hardware.disk_parts(machine, claims, volumes, used)),
        nics=list(hardware.nic_parts(machine)),
        snapshots=kept,
        conditions=objectparts.condition_parts(machine),
        pending=waiting,
        guest=guestparts.guest_part(machine, report),
        cloud_init=guestparts.cloud_init(machine),
        access=guestparts.access(machine, is_paddock=is_paddock),
        actions=actionstates.states(machine, kept, can_suspend=is_paddock),
        graph=graphs.graph(machine, around, kept),
    )


async def snapshot_parts(client: Client, machine: MachineView, namespace: str) -> list[WebSnapshotPart]:
    """Return the snapshots of a machine as a tree."""
    if path := machine.kind.adapter.snapshot_machine:
        found = await _list(client, snapshots.kind_of(machine.kind), machine.namespace)
        return snapshottrees.snapshot_parts(snapshottrees.of_machine(found, machine.name, *path), ())
    if machine.vm_key is None:
        return []
    name = machine.vm_key.name
    taken, restores = await asyncio.gather(_list(client, snapshots.SNAPSHOTS, namespace), _list(client, kindtable.RESTORES, namespace))
    return snapshottrees.snapshot_parts(
        snapshottrees.of_machine(taken, name, "spec", "source", "name"), snapshottrees.of_machine(restores, name, "spec", "target", "name")
    )


async def _list(client: Client, target: Target[Data], namespace: str) -> Sequence[Data]:
    try:
        return (await client.list(target, Selection(namespace=namespace))).items
    except (NotFound, Forbidden):
        return ()


async def _report(client: Client, machine: MachineView) -> Data | None:
    """Return the guest agent's report; None without an agent, or for a user who may not ask it."""
    if machine.vmi_key is None or not holds(machine.vmi, "AgentConnected"):
        return None
    key = machine.vmi_key
    path = f"{SUBRESOURCES}/namespaces/{key.namespace}/virtualmachineinstances/{key.name}/guestosinfo"
    with contextlib.suppress(PaddockError, TimeoutError):
        async with asyncio.timeout(_AGENT_SECONDS):
            found: Data = orjson.loads(await client.request("GET", path))
            return found
    return None


async def _node(client: Client, machine: MachineView) -> Data | None:
    name = texts(machine.vmi, "status", "nodeName")
    if not name:
        return None
    try:
        return await client.get(_NODES, Key("", name))
    except (NotFound, Forbidden):
        return None


ROUTES = (WebRoute("GET", "machines/PLACE", detail),)
