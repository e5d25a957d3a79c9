"""Changes of a VirtualMachine that its running guest does not have yet.

KubeVirt keeps the form that a run began with as a ControllerRevision, and its instance names it. The difference between that form and the
present one is judged by the same table as a plan.
"""

from collections.abc import Iterable

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, conditions, texts
from paddock.fleet.kinds import VM
from paddock.fleet.machines import planning, waiting
from paddock.fleet.machines.edits import ObjectEdit
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers import surroundings
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes.differences import ABSENT, format_named
from paddock.kubevirt.plan.changes.effects import Effect
from paddock.web.answers.machine import WebPendingPart

REVISIONS = kind_target("apps", "ControllerRevision")
# What a running guest gets without a restart is no longer pending.
_AT_ONCE = (str(Effect.NONE), str(Effect.LIVE))


async def gathered(server: ServerSession, machine: MachineView) -> list[WebPendingPart]:
    """Return the pending changes of a machine."""
    name = texts(machine.vmi, "status", "virtualMachineRevisionName")
    if machine.vm is None or machine.vm_key is None or not waiting.is_live(machine):
        return []
    revision: Data | None = None
    if name:
        try:
            revision = await server.client.get(REVISIONS, Key(machine.vm_key.namespace, name))
        except (NotFound, Forbidden):
            revision = None
    if revision is None:
        return stated(machine)
    return changes(machine, revision, await surroundings.read(server.client, machine.vm))


def changes(machine: MachineView, revision: Data, resources: Iterable[Resource]) -> list[WebPendingPart]:
    """Return the changes since a revision. Without any that is known, the machine's own word."""
    vm, started = machine.vm, at(revision, "data", "spec")
    if vm is None or machine.vm_key is None or not isinstance(started, dict):
        return stated(machine)
    # How a machine is started and stopped is no part of a run.
    kept = {name: vm["spec"][name] for name in ("running", "runStrategy") if name in vm["spec"]}
    before = {**vm, "spec": {**{name: value for name, value in started.items() if name not in ("running", "runStrategy")}, **kept}}
    edit = ObjectEdit(target=VM.target, key=machine.vm_key, before=before, after=vm)
    found = [
        WebPendingPart(
            field=format_named(difference.named),
            from_=_shown(difference.before),
            to=_shown(difference.after),
            effect=judged.effect,
            why=judged.why,
        )
        for difference, judged in planning.judged(edit, str(machine), resources)
        if judged.effect not in _AT_ONCE
    ]
    return found or stated(machine)


def stated(machine: MachineView) -> list[WebPendingPart]:
    """Return what the machine itself says of changes that wait for a restart."""
    condition = conditions(machine.vm).get("RestartRequired")
    if texts(condition, "status") != "True":
        return []
    return [WebPendingPart(field="", from_="", to="", effect=str(Effect.RESTART), why=texts(condition, "message"))]


def _shown(value: object) -> str:
    return "" if value is ABSENT or value is None else value if isinstance(value, str) else finding.show(value)
