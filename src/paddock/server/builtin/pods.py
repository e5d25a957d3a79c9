"""`v1 Pod` where no kubelet runs: stored, bound, evicted and deleted as kube-apiserver alone does it.

A pod that no node has goes at once when it is deleted. A pod of a node stays until its kubelet, or whoever plays it, deletes it
with a grace period of zero.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import ages, failure, selectors
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server import bodies
from paddock.server.builtin import podspecs
from paddock.server.builtin.podspecs import RULE
from paddock.server.context import RequestContext, ServerParts, Subhandler
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Proposal
from paddock.server.representation import answer, form_of
from paddock.server.resources.resource import Subresource
from paddock.server.resources.strategy import Strategy, WriteContext
from paddock.server.verbs import reading, writing
from paddock.server.verbs.options import write_options

EPHEMERAL, RESIZE, BINDING, EVICTION = "ephemeralcontainers", "resize", "binding", "eviction"
# what a write of these subresources changes of the spec
_PARTS = {EPHEMERAL: ("ephemeralContainers",), RESIZE: ("containers", "initContainers")}
_STREAMS = ("attach", "exec", "portforward")
# what there is for a machine in place of each of these; the Pod of a machine is a view, and has no process
_WAYS = {
    "log": "no container writes a log; what the guest wrote to its serial console: paddock logs {0}",
    "attach": "there is no container; the console of the guest: paddock console {0} or virtctl console {0}",
    "exec": "there is no container; a command in the guest: paddock exec {0} or virtctl ssh USER@vmi/{0}",
    "portforward": "there is no container; a port of the guest: paddock forward {0} or virtctl port-forward vmi/{0}",
    "proxy": "there is no container; a port of the guest: paddock forward {0} or virtctl port-forward vmi/{0}",
}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 300
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class StoredPodStrategy(Strategy):
    """A pod waits for a node, and changes little once it is made."""

    def counts_generation(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """Defaults of a pod that its template does not have."""
        spec = new.get("spec")
        if not isinstance(spec, dict):
            return
        spec.setdefault("enableServiceLinks", True)
        podspecs.requests_of_limits(spec)
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing has been observed; what admission fills in is filled in."""
        spec = new.get("spec") or {}
        new["status"] = {"phase": "Pending", "qosClass": podspecs.quality(spec)}
        _tolerate(spec)
        _prioritize(spec, context)
        _take_runtime_class(spec, new["metadata"].get("name", ""), context)
        return new

    def taken(self, new: Data, old: Data, context: WriteContext) -> Data:
        """A binding says in the status that the pod has a node."""
        if context.subresource == BINDING:
            scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": context.now}
            status = old.get("status") or {}
            others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
            new["status"] = {**status, "conditions": [*others, scheduled]}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The rules of a spec, and of its change."""
        spec = new.get("spec") or {}
        if old is None:
            if spec.get("ephemeralContainers"):
                yield finding.forbidden(("spec", "ephemeralContainers"), "cannot be set on create", RULE)
            yield from podspecs.check(spec, ("spec",))
        elif spec != old.get("spec"):
            yield from podspecs.check(spec, ("spec",))
            if context.subresource == EPHEMERAL:
                yield from _kept_containers(spec, old.get("spec") or {})
            elif context.subresource in ("", "status") and _fixed(spec) != _fixed(old.get("spec") or {}):
                yield finding.forbidden(("spec",), _CHANGEABLE, RULE)

    def holds_deletion(self, old: Data) -> bool:
        """While a node has it and it has not ended."""
        meta, phase = old["metadata"], (old.get("status") or {}).get("phase")
        if meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds"):
            return False
        return bool((old.get("spec") or {}).get("nodeName")) and phase not in ("Succeeded", "Failed")

    def grace_seconds(self, old: Data, asked: int | None) -> int:
        """Return the seconds that the client gives, else those of the pod."""
        spec = old.get("spec") or {}
        if not spec.get("nodeName") or (old.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return 0
        return int(spec.get("terminationGracePeriodSeconds") or 0) if asked is None else asked

    def deletion_time(self, now: str, grace: int) -> str:
        """The time by which the kubelet has to be done."""
        return ages.timestamp((ages.seconds_of(now) or 0.0) + grace)

    def returns_deleted(self) -> bool:
        """The pod, so that clients see how long it has."""
        return True


class RefusedPodStrategy(Strategy):
    """A kind of which no object can be made here."""

    def __init__(self, group: str, plural: str, why: str) -> None:
        self._group = group
        self._plural = plural
        self._why = why

    def before_create(self, new: Data) -> None:
        """Refused, whatever admission says: webhooks and policies judge first, as they do where pods run."""
        name = new["metadata"].get("name", "")
        why = _WHY_NO_GUESTFS if self._plural == "pods" and name.startswith(_GUESTFS) else self._why
        raise failure.forbidden(failure.FailureTarget(name=name, group=self._group, kind=self._plural), why)


# What `virtctl guestfs` makes is a pod with tools for disks, which the host has, too.
_GUESTFS = "libguestfs-tools"
_WHY_NO_GUESTFS = "this server runs no pods; stop the machine and look into its disk on the host, with qemu-img and guestfish"
WHY_REFUSED = "this server runs virtual machines, not pods; create a VirtualMachine instead"


def _tolerate(spec: Data) -> None:
    """Stay a while on a node that fails, as the admission of DefaultTolerationSeconds has it."""
    found: list[Data] = spec.get("tolerations") or []
    for key in _TOLERATED:
        if not any(each.get("key") in (key, None) and each.get("effect") in ("NoExecute", None) for each in found):
            found = [*found, {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}]
    spec["tolerations"] = found


def _prioritize(spec: Data, context: WriteContext) -> None:
    """The priority of the named class, or of the default one, as the admission of Priority has it."""
    name = spec.get("priorityClassName")
    found = context.view.get("priorityclasses.scheduling.k8s.io", "", name) if name else _default_priority(context)
    if name and found is None:
        raise failure.forbidden(failure.FailureTarget(kind="pods"), f"no PriorityClass with name {name} was found")
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec["priority"] = (found or {}).get("value", 0)
    spec.setdefault("preemptionPolicy", (found or {}).get("preemptionPolicy") or "PreemptLowerPriority")


def _take_runtime_class(spec: Data, pod: str, context: WriteContext) -> None:
    """Set the overhead and the scheduling of the named RuntimeClass, as the admission of RuntimeClass does."""
    name = spec.get("runtimeClassName")
    found = context.view.get("runtimeclasses.node.k8s.io", "", name) if name else None
    if name and found is None:
        raise _rejected(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = ((found or {}).get("overhead") or {}).get("podFixed")
    if spec.get("overhead") and not overhead:
        raise _rejected(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if overhead and spec.get("overhead", overhead) != overhead:
        raise _rejected(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead:
        spec["overhead"] = overhead
    scheduling = (found or {}).get("scheduling") or {}
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            places = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise _rejected(pod, f"conflict: {places}")
        selector = {**selector, key: value}
    if selector:
        spec["nodeSelector"] = selector
    own = spec.get("tolerations") or []
    if more := [each for each in scheduling.get("tolerations") or () if each not in own]:
        spec["tolerations"] = [*own, *more]


def _rejected(pod: str, why: str) -> failure.Failure:
    return failure.forbidden(failure.FailureTarget(name=pod, kind="pods"), why)


def _default_priority(context: WriteContext) -> Data | None:
    found = [each for each in context.view.list("priorityclasses.scheduling.k8s.io") if each.get("globalDefault")]
    return min(found, key=lambda each: int(each.get("value", 0)), default=None)


def _fixed(spec: Data) -> Data:
    """Return the immutable fields of a spec."""
    changeable = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
    kept = {key: value for key, value in spec.items() if key not in changeable}
    for word in ("containers", "initContainers"):
        if word in kept:
            kept[word] = [{**each, "image": ""} for each in kept[word] or ()]
    return kept


def _kept_containers(spec: Data, before: Data) -> Iterator[Finding]:
    """Ephemeral containers are added, never changed."""
    now = {each.get("name"): each for each in spec.get("ephemeralContainers") or ()}
    for each in before.get("ephemeralContainers") or ():
        path = ("spec", "ephemeralContainers")
        if each.get("name") not in now:
            yield finding.forbidden(path, f'existing ephemeral containers "{each["name"]}" may not be removed\n', RULE)
        elif now[each.get("name")] != each:
            yield finding.forbidden(path, f'existing ephemeral containers "{each["name"]}" may not be changed\n', RULE)


def subresources(rows: tuple[tuple[str, str, str], ...]) -> tuple[Subresource, ...]:
    """The subresources of pods, as the table names them."""
    groups = {EVICTION: "policy/v1"}
    return tuple(
        Subresource(name, tuple(verbs.split()), "" if kind == "Pod" else kind, groups.get(name, "" if kind == "Pod" else "v1"))
        for name, kind, verbs in rows
    )


def handlers(parts: ServerParts) -> dict[tuple[str, str, str, str], Subhandler]:
    """Return the handlers of the subresources of pods besides the status."""
    found: dict[tuple[str, str, str, str], Subhandler] = {("", "pods", "log", "get"): lambda call: _no_kubelet(parts, call)}
    for name in (*_STREAMS, "proxy"):
        for verb in ("create", "get", "update", "patch", "delete") if name == "proxy" else ("create", "get"):
            found["", "pods", name, verb] = lambda call: _no_kubelet(parts, call)
    for name in _PARTS:
        found["", "pods", name, "get"] = lambda call: reading.get(parts, call)
        found["", "pods", name, "update"] = lambda call: _replaced(parts, call)
        found["", "pods", name, "patch"] = lambda call: writing.patch_(parts, call)
    found["", "pods", BINDING, "create"] = lambda call: bind(parts, call)
    found["", "pods", EVICTION, "create"] = lambda call: evict(parts, call)
    return found


async def _no_kubelet(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """Nobody has output or a shell: the answer says what is missing."""
    record = parts.reader.get(call.resource, call.route.namespace, call.route.name)
    pod = decode(record.value)
    if parts.viewed.explanation(record.key):
        (owner,) = pod["metadata"]["ownerReferences"]
        why = _WAYS[call.route.subresource.partition("/")[0]].format(owner["name"])
        raise failure.forbidden(call.resource.about(call.route.name), why)
    node = (pod.get("spec") or {}).get("nodeName")
    if not node:
        raise failure.bad_request(f"pod {call.route.name} does not have a host assigned")
    if parts.view.get("nodes", "", node) is None:
        raise failure.not_found(failure.FailureTarget(name=node, kind="pods"))
    raise failure.unavailable(f"no kubelet runs on node {node}: this server stores pods and runs none")


async def _replaced(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """A PUT of a part of the spec: the rest stays as it is."""
    body = bodies.read_object(call.request).data

    def compute(old: Data) -> Proposal:
        new = copied(old)
        new["metadata"]["resourceVersion"] = (body.get("metadata") or {}).get("resourceVersion") or old["metadata"].get("resourceVersion")
        for member in _PARTS[call.route.subresource]:
            if member in (body.get("spec") or {}):
                new["spec"][member] = copied(body["spec"][member])
        return Proposal(new)

    options = write_options(call, operation="Update")
    written = await parts.writer.replace(call.resource, call.route.namespace, call.route.name, compute, options)
    return answer(form_of(call.request), parts.renderer(call.resource, form_of(call.request)).one(written.value))


async def bind(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """`POST .../binding`: a scheduler gives the pod a node."""
    body = bodies.read_object(call.request).data
    target = body.get("target") or {}
    if target.get("kind") not in ("", None, "Node") or not target.get("name"):
        raise failure.invalid(
            failure.FailureTarget(name=call.route.name, kind="Binding"),
            [
                finding.required(("target", "name"), RULE)
                if not target.get("name")
                else finding.unsupported(("target", "kind"), target["kind"], ("Node", "<empty>"), RULE)
            ],
        )

    def compute(old: Data) -> Proposal:
        new = copied(old)
        about = failure.FailureTarget(name=call.route.name, kind="pods/binding")
        if old["metadata"].get("deletionTimestamp"):
            raise failure.conflict(about, f"pod {call.route.name} is being deleted, cannot be assigned to a host")
        if old["spec"].get("nodeName"):
            raise failure.conflict(about, f'pod {call.route.name} is already assigned to node "{old["spec"]["nodeName"]}"')
        if old["spec"].get("schedulingGates"):
            raise failure.conflict(about, f"pod {call.route.name} has non-empty .spec.schedulingGates")
        new["spec"]["nodeName"] = target["name"]
        new["metadata"].setdefault("annotations", {}).update((body.get("metadata") or {}).get("annotations") or {})
        return Proposal(new)

    await parts.writer.replace(call.resource, call.route.namespace, call.route.name, compute, write_options(call, operation="Create"))
    return success()


def success() -> HttpResponse:
    """Return the answer to a binding or an eviction that was carried out."""
    made = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return HttpResponse(201, orjson.dumps(made), (("content-type", "application/json"),))


async def evict(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """`POST .../eviction`: a deletion that disruption budgets may forbid."""
    body = bodies.read_object(call.request).data
    pod = decode(parts.reader.get(call.resource, call.route.namespace, call.route.name).value)
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed", "Pending") and not pod["metadata"].get("deletionTimestamp"):
        _check_budgets(parts, pod)
    options = write_options(call, operation="Create")
    said: Any = body.get("deleteOptions") or {}
    asked = DeleteOptions(
        user=options.user, groups=options.groups, user_uid=options.uid, dry_run=options.dry_run, grace=said.get("gracePeriodSeconds")
    )
    await parts.writer.delete(call.resource, call.route.namespace, call.route.name, asked)
    return success()


def _check_budgets(parts: ServerParts, pod: Data) -> None:
    meta = pod["metadata"]
    for budget in parts.view.list("poddisruptionbudgets.policy", meta.get("namespace", "")):
        selector = (budget.get("spec") or {}).get("selector")
        if selector is None or not selectors.matches(selectors.read(selector), meta.get("labels") or {}):
            continue
        status, name = budget.get("status") or {}, budget["metadata"]["name"]
        if status.get("disruptionsAllowed", 0) <= 0:
            why = (
                f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
                f"{status.get('currentHealthy', 0)} currently"
            )
            cause = failure.StatusCause("DisruptionBudget", why, "")
            raise failure.Failure(
                429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", causes=(cause,)
            )
