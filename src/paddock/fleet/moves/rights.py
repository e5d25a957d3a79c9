"""The rights that a move needs, as the API server of each side judges them before anything happens."""

import asyncio
from collections.abc import Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import VM
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.moves import objectcalls, observed
from paddock.fleet.moves.plan.moveplan import Hindrance
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client import ownrights
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import EVERYTHING, Selection
from paddock.kubernetes.targets import kind_target

INSTALLATIONS = kind_target("kubevirt.io", "KubeVirt")
_INGRESSES = kind_target("networking.k8s.io", "Ingress")
_ROUTES = kind_target("route.openshift.io", "Route")
_EXPORT_PROXY, _KUBEVIRT = "virt-exportproxy", "kubevirt"
# group and resource, and the verbs
NeededRights = Mapping[tuple[str, str], tuple[str, ...]]
EXPORTS: NeededRights = {
    (observed.EXPORTS.group, observed.EXPORTS.plural): ("create", "get", "list", "delete"),
    ("", "secrets"): ("create",),
}
UPLOADS: NeededRights = {
    ("cdi.kubevirt.io", "datavolumes"): ("create", "patch"),
    ("upload.cdi.kubevirt.io", "uploadtokenrequests"): ("create",),
}
# Kubernetes authorizes a WebSocket as `get`, because it begins with a GET; since 1.35, as `create`, too.
_FORWARDS: NeededRights = {("", "services"): ("get",), ("", "pods"): ("list",), ("", "pods/portforward"): ("get", "create")}


def of_machine(machine: MachineView) -> NeededRights:
    """Return the rights to fence and to release a machine; those of a front's VirtualMachine are among them."""
    kinds = dict.fromkeys((machine.kind, VM))
    return {(kind.group, kind.plural): ("patch",) for kind in kinds}


async def refused(side: MoveSide, needed: NeededRights) -> list[str]:
    """Return what the user may not do in the namespace of a side, a line for each resource."""

    async def verbs(group: str, path: str, wanted: tuple[str, ...]) -> list[str]:
        resource, _, subresource = path.partition("/")
        place = {"group": group, "resource": resource, "subresource": subresource, "namespace": side.namespace}
        answers = await asyncio.gather(*(ownrights.may(side.client, {"verb": verb, **place}) for verb in wanted))
        return [verb for verb, is_allowed in zip(wanted, answers, strict=True) if not is_allowed]

    missing = await asyncio.gather(*(verbs(*name, wanted) for name, wanted in needed.items()))
    lines = zip(needed, missing, strict=True)
    return [f"you may not {', '.join(found)} {path}{group and '.'}{group}" for (group, path), found in lines if found]


async def shut_exports(side: MoveSide) -> Hindrance:
    """Return a hindrance if the user cannot reach the exports of a cluster from outside."""
    if await side.client.is_paddock() or not (missing := await refused(side, _FORWARDS)):
        return Hindrance()
    led_to = await _is_led_to(side)
    if led_to:
        return Hindrance()
    why = f"{'; '.join(missing)} in namespace {side.namespace} at the source, where the move reads disks through a forwarded port"
    if led_to is False:
        return Hindrance(f"{why}; ask for the right, or for an Ingress or a Route to {_EXPORT_PROXY}")
    text = (
        f"{why} unless an Ingress or a Route leads to {_EXPORT_PROXY}, which you may not see: without one, the move stops at its first disk"
    )
    return Hindrance(text, is_certain=False)


async def _is_led_to(side: MoveSide) -> bool | None:
    """Return whether an Ingress or a Route leads to exports; None if the user may not see."""
    try:
        installed = (await side.client.list(INSTALLATIONS, EVERYTHING)).items
    except (Forbidden, NotFound):
        installed = []
    namespaces = {texts(each, "metadata", "namespace") for each in installed} or {_KUBEVIRT}
    is_visible = True
    for namespace in namespaces:
        for target in (_INGRESSES, _ROUTES):
            try:
                found = (await side.client.list(target, Selection(namespace=namespace))).items
            except NotFound:
                continue
            except Forbidden:
                is_visible = is_visible and not await objectcalls.serves(side.client, target)
                continue
            if any(_EXPORT_PROXY in _backends(each) for each in found):
                return True
    return False if is_visible else None


def _backends(data: Data) -> set[str]:
    """Return the Services that an Ingress or a Route leads to."""
    paths = [path for rule in entries(data, "spec", "rules") for path in entries(rule, "http", "paths")]
    named = [texts(each, "backend", "service", "name") for each in paths]
    return {*named, texts(at(data, "spec", "defaultBackend"), "service", "name"), texts(data, "spec", "to", "name")}
