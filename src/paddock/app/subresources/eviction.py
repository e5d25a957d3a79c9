"""The eviction of the launcher Pods of simulated guests: `kubectl drain` moves machines away from a node, or ends them there."""

from functools import partial
from typing import Any

from paddock.kubernetes.meta import failure
from paddock.kubevirt.plan.migration import evictions
from paddock.server.api import Api
from paddock.server.builtin import pods
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.verbs.options import write_options

_INSTANCES = "virtualmachineinstances.kubevirt.io"
# Status of an instance is for controllers.
_WHO = Options(user=CONTROLLER, groups=CONTROLLER_GROUPS, manager="paddock", unasked=True)


def serve(api: Api, parts: ServerParts) -> None:
    """Answer evictions of launcher Pods from now on; those of other Pods stay as they are."""
    api.subresources["", "pods", pods.EVICTION, "create"] = partial(_evict, parts)


async def _evict(parts: ServerParts, call: RequestContext) -> HttpResponse:
    pod = decode(parts.reader.get(call.resource, call.route.namespace, call.route.name).value)
    owners = pod["metadata"].get("ownerReferences") or ()
    name = next((each["name"] for each in owners if each["kind"] == "VirtualMachineInstance"), "")
    instance = parts.view.get(_INSTANCES, call.route.namespace, name) if name else None
    resource = parts.registry.find("kubevirt.io", "v1", "virtualmachineinstances")
    if instance is None or resource is None:
        return await pods.evict(parts, call)
    decision, options = evictions.decide(instance), write_options(call, operation="Create")
    if decision.evacuates and not options.dry_run:

        def noted(old: dict[str, Any]) -> Proposal:
            status = old.get("status") or {}
            return Proposal({**old, "status": {**status, "evacuationNodeName": status.get("nodeName")}})

        await parts.writer.replace(resource, call.route.namespace, name, noted, _WHO)
    if decision.refusal:
        raise failure.Failure(429, "TooManyRequests", decision.refusal)
    asked = DeleteOptions(user=options.user, groups=options.groups, user_uid=options.uid, dry_run=options.dry_run)
    await parts.writer.delete(resource, call.route.namespace, name, asked)
    return pods.success()
