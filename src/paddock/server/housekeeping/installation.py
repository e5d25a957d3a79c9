"""The KubeVirt object is Available while the controllers of machines run, and says why when they do not.

The server writes it, as it writes the condition of its Node: the controllers cannot when they do not run.
"""

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.context import ServerParts
from paddock.server.housekeeping.node import NodeProblem
from paddock.server.objects.requests import Options, Proposal

_NAMESPACE = _NAME = "kubevirt"
_WHO = Options(user="system:apiserver", manager="paddock", unasked=True, subresource="status")
_READY = NodeProblem("AllComponentsReady", "All components are ready.")


async def report(parts: ServerParts, problem: NodeProblem | None) -> None:
    """Write why machines are not looked after, or None; nothing where there is no such object yet, or where it says so already."""
    resource = parts.registry.find("kubevirt.io", "v1", "kubevirts")
    found = parts.view.get(resource.collection, _NAMESPACE, _NAME) if resource is not None else None
    if resource is None or found is None or _with_condition(found, problem, parts.clock.now()) == found:
        return
    try:
        await parts.writer.replace(
            resource, _NAMESPACE, _NAME, lambda old: Proposal(_with_condition(old, problem, parts.clock.now())), _WHO
        )
    except failure.Failure as said:
        # It is gone: the controller makes it again, and what it makes is right then.
        if said.code != 404:
            raise


def _with_condition(data: Data, problem: NodeProblem | None, now: str) -> Data:
    said = problem or _READY
    wanted = {"Available": "True" if problem is None else "False", "Degraded": "False" if problem is None else "True"}
    status: Data = data.get("status") or {}
    conditions = []
    for each in status.get("conditions") or ():
        state = wanted.get(each.get("type", ""))
        if state is None or (each.get("status"), each.get("reason"), each.get("message")) == (state, said.reason, said.message):
            conditions.append(each)
        else:
            since = each.get("lastTransitionTime") if each.get("status") == state else None
            conditions.append({**each, "status": state, "reason": said.reason, "message": said.message, "lastTransitionTime": since or now})
    return {**data, "status": {**status, "conditions": conditions}} if conditions else data
