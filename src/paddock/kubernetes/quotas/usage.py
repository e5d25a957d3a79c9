"""The amounts that an instance or a Pod takes of a quota, and the scopes that it is in. Pure.

A Pod takes what it requests until it has ended. An instance takes what its launcher Pod would, from the moment at which KubeVirt makes that
Pod, and the guest itself under the names of the Application Aware Quota (`requests.cpu/vmi` and the like). Amounts are in billionths.
"""

from collections.abc import Iterable

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import launcher

Amounts = dict[str, int]
# An instance in one of these phases has a launcher Pod; in one that is True, the Pod takes resources.
_TAKES = {"Scheduling": True, "Scheduled": True, "Running": True, "Succeeded": False, "Failed": False}
_ENDED = ("Succeeded", "Failed")
COUNT = "count/pods"
# What every container has to say where a quota names it.
REQUIRED = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
# The names of the guest's own amounts, long and short.
_INSTANCES = ("requests.instances/vmi", "instances/vmi")
_VCPUS = ("requests.cpu/vmi", "cpu/vmi")
_MEMORY = ("requests.memory/vmi", "memory/vmi")
_ANTI = ("podAffinity", "podAntiAffinity")


class Traits(msgspec.Struct, frozen=True):
    """The properties of a Pod that decide about scopes."""

    priority_class: str = ""
    terminating: bool = False
    best_effort: bool = False
    cross_namespace: bool = False


def has_launcher(instance: Data) -> bool:
    """Return whether KubeVirt has made the Pod of an instance."""
    return ((instance.get("status") or {}).get("phase") or "") in _TAKES


def of_instance(instance: Data) -> Amounts:
    """Return the amounts of an instance, without its object."""
    status, spec = instance.get("status") or {}, instance.get("spec") or {}
    takes = _TAKES.get(status.get("phase") or "")
    if takes is None:
        return {}
    amounts = {COUNT: quantity.UNIT}
    if not takes:
        return amounts
    amounts.update(_pod(launcher.resources_of(spec)))
    present = (status.get("memory") or {}).get("guestCurrent")
    memory = max(launcher.guest_memory(spec), quantity.whole(present) if present is not None else 0)
    sizes = ((_INSTANCES, 1), (_VCPUS, launcher.vcpus_of(spec)), (_MEMORY, memory))
    amounts.update({name: amount * quantity.UNIT for names, amount in sizes for name in names})
    return amounts


def of_new_instance(instance: Data) -> Amounts:
    """Return the amounts that an instance will take when it starts."""
    return of_instance({"spec": instance.get("spec") or {}, "status": {"phase": "Scheduling"}})


def of_pod(pod: Data) -> Amounts:
    """Return the amounts of a Pod, without its object."""
    spec = pod.get("spec") or {}
    if ((pod.get("status") or {}).get("phase") or "") in _ENDED:
        return {}
    requests, limits = _total(spec, "requests"), _total(spec, "limits")
    return _pod(launcher.Launcher(requests, limits, {}))


def instance_traits(instance: Data) -> Traits:
    """Return the properties of the launcher Pod of an instance. It always requests something."""
    spec = instance.get("spec") or {}
    return Traits(spec.get("priorityClassName") or "", cross_namespace=_crosses(spec))


def pod_traits(pod: Data) -> Traits:
    """Return the properties of a Pod."""
    spec = pod.get("spec") or {}
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    resources = [each.get("resources") or {} for each in containers]
    asks = any((each.get(part) or {}).get(name) for each in resources for part in ("requests", "limits") for name in ("cpu", "memory"))
    deadline = spec.get("activeDeadlineSeconds")
    return Traits(spec.get("priorityClassName") or "", deadline is not None and deadline >= 0, not asks, _crosses(spec))


def unsaid(pod: Data, names: Iterable[str]) -> str:
    """Return the amounts that a quota counts and containers of a Pod do not say, in kube-apiserver's words."""
    missing: dict[str, set[str]] = {}
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        said = _pod(launcher.Launcher(_amounts(resources.get("requests")), _amounts(resources.get("limits")), {}))
        for name in REQUIRED.intersection(names) - said.keys():
            missing.setdefault(name, set()).add(container.get("name") or "")
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _pod(resources: launcher.Launcher) -> Amounts:
    """Return the names by which a quota counts requests and limits."""
    amounts = {"pods": quantity.UNIT}
    for name, amount in resources.requests.items():
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
            amounts[name] = amount
        amounts[f"requests.{name}"] = amount
    for name, amount in {**resources.implied, **resources.limits}.items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            amounts[f"limits.{name}"] = amount
    return amounts


def _amounts(amounts: Data | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (amounts or {}).items() if quantity.is_quantity(amount)}


def _total(spec: Data, part: str) -> Amounts:
    """Return the sum over containers that run side by side, or what one of the first needs, if that is more; and the overhead."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts((container.get("resources") or {}).get(part)))
    beside: Amounts = {}
    first: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts((container.get("resources") or {}).get(part))
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(beside, own)
            own = {}
        needed = dict(beside)
        _add(needed, own)
        first = {name: max(first.get(name, 0), needed.get(name, 0)) for name in first.keys() | needed.keys()}
    total = {name: max(total.get(name, 0), first.get(name, 0)) for name in total.keys() | first.keys()}
    overhead = _amounts(spec.get("overhead"))
    _add(total, {name: amount for name, amount in overhead.items() if part == "requests" or name in total})
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _crosses(spec: Data) -> bool:
    """Return whether a rule of affinity looks at Pods of other namespaces."""
    for kind in _ANTI:
        rules = (spec.get("affinity") or {}).get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        terms += [each.get("podAffinityTerm") or {} for each in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()]
        if any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in terms):
            return True
    return False
