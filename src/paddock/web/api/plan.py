"""`POST plan`: what is wrong with a manifest, and what each change of it does to the machine."""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.base.errors import PaddockError
from paddock.fleet import kinds
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.documents import planlines
from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.documents.planlines import PlanLine
from paddock.fleet.documents.rendering import RenderSummary
from paddock.fleet.machines import finding, waiting
from paddock.fleet.machines.finding import MachineNotFound
from paddock.fleet.machines.planning import ChangePlan, PlannedChange
from paddock.fleet.servers import surroundings
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import serverforecasts
from paddock.kubernetes import admission
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import format_named
from paddock.web.answers.editing import WebFinding, WebPlan, WebPlannedChange
from paddock.web.api import manifests
from paddock.web.routes import WebRequest, WebRoute


class _Body(msgspec.Struct, frozen=True):
    after: str
    before: str = ""


async def plan(request: WebRequest) -> WebPlan:
    """Return findings and effects. Nothing is written."""
    body = request.read(_Body)
    server = request.session.server
    settings = await settings_of(server.client)
    try:
        after = manifests.subjects(body.after, settings)
        before = manifests.subjects(body.before, settings) if body.before else []
    except UnreadableManifest as error:
        return WebPlan(findings=[manifests.unreadable(error)], changes=[], summary="The text cannot be read.", running=False)
    found = manifests.findings(after, settings)
    running = await _runs(server, after)
    old, new = manifests.gathered(before), manifests.gathered(after)
    if not before or old.refused or new.refused:
        return WebPlan(findings=found, changes=[], summary=_verdict(after, found), running=running)
    objects = [each for subject in (*before, *after) for each in await surroundings.read(server.client, subject.data)]
    lines = planlines.lines(_within(old, objects), _within(new, objects), RenderSummary(), settings)
    lines += planlines.lacking(new, await serverforecasts.on_server(server, new))
    return WebPlan(findings=found, changes=[_change(each) for each in lines], summary=summary(lines, running=running), running=running)


async def settings_of(client: Client) -> AdmissionSettings:
    """Return the rules of the server: those of Paddock's engine, or those of a cluster with KubeVirt."""
    return AdmissionSettings(target="embedded" if await client.is_paddock() else "cluster")


def _within(objects: InputObjects, more: Iterable[Resource]) -> InputObjects:
    """Return objects in a world that has what the server has beside them."""
    return msgspec.structs.replace(objects, object_set=objects.object_set.within(more))


def _verdict(objects: Sequence[InputObject], findings: Sequence[WebFinding]) -> str:
    errors = sum(each.severity == "error" for each in findings)
    if errors:
        return "The text has one error." if errors == 1 else f"The text has {errors} errors."
    if not objects:
        return "The text has no objects."
    return "The object can be written." if len(objects) == 1 else f"All {len(objects)} objects can be written."


def _change(line: PlanLine) -> WebPlannedChange:
    field = format_named(line.difference.named) if line.difference is not None else line.change
    change = line.change.removeprefix(f"{field}: ") if field and line.difference is not None else ""
    return WebPlannedChange(field=field or line.title, change=change, effect=line.effect, why=line.why, line=line.line)


def summary(lines: Sequence[PlanLine], *, running: bool) -> str:
    """Return one sentence on the whole."""
    if not lines:
        return "Nothing changes."
    if any(each.effect == planlines.REFUSED for each in lines):
        return "The server refuses a part of this. Read the reasons below."
    if any(each.effect == planlines.WAITS for each in lines):
        return "A part of this waits until its quota has room. Read the reasons below."
    changes = tuple(PlannedChange(each.effect, each.change, each.why) for each in lines)
    return ChangePlan("", changes, running).summary()


async def _runs(server: ServerSession, objects: Sequence[InputObject]) -> bool:
    """Return whether a machine of the text runs now."""
    for each in objects:
        group, _ = admission.split_api_version(each.data.get("apiVersion"))
        kind, name = kinds.of(group, str(each.data.get("kind"))), texts(each.data, "metadata", "name")
        if kind is None or not name:
            continue
        namespace = texts(each.data, "metadata", "namespace") or server.namespace
        try:
            if waiting.runs(await finding.find(server.client, f"{kind.word}/{name}", namespace)):
                return True
        except MachineNotFound:
            continue
        except PaddockError:
            # A plan is made of manifests: a server that is away, or forbids, does not prevent it.
            return False
    return False


ROUTES = (WebRoute("POST", "plan", plan),)
