"""Limits and reservations in MHz as shares of processors, which KubeVirt counts in.

A processor has as many MHz as KubeVirt tells of the node, and of the slowest node where they differ. Where nobody tells, the sentences of
the translation say that there is no limit. A machine whose processors are pinned has all of them.
"""

import msgspec

from paddock.contract.payloads import ClassPayload
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import EVERYTHING
from paddock.kubevirt.kinds.domain import Resources
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceTemplate
from paddock_drivers.kubevirt import marks, targets
from paddock_drivers.kubevirt.cluster import TargetCluster
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings


async def informed(cluster: TargetCluster, hardware: ClassPayload) -> KubeVirtDriverSettings:
    """Return the settings with the frequency of the nodes, if the class needs it."""
    settings, given = cluster.settings, hardware.resource_limits
    if settings.processor_mhz or given is None or not (given.cpu_limit or given.cpu_reservation):
        return settings
    try:
        nodes = (await cluster.client.list(targets.NODES, EVERYTHING)).items
    except (NotFound, Forbidden):
        return settings
    frequencies = [str(((each.get("metadata") or {}).get("labels") or {}).get(marks.FREQUENCY, "")) for each in nodes]
    known = [int(each) // 1_000_000 for each in frequencies if each.isdecimal()]
    return msgspec.structs.replace(settings, processor_mhz=min(known, default=0))


def limited(template: VirtualMachineInstanceTemplate, hardware: ClassPayload, mhz: int) -> VirtualMachineInstanceTemplate:
    """Return the template with the class's limit and reservation of processors. Pure."""
    given = hardware.resource_limits
    if given is None or not _counts(hardware, mhz):
        return template
    limit, request = (_share(each, mhz) for each in (given.cpu_limit, given.cpu_reservation))
    if limit and request:
        # KubeVirt refuses a request above the limit.
        request = min(request, limit)
    domain = template.spec.domain
    before = domain.resources or Resources()
    resources = msgspec.structs.replace(
        before,
        limits={**(before.limits or {}), "cpu": f"{limit}m"} if limit else before.limits,
        requests={**(before.requests or {}), "cpu": f"{request}m"} if request else before.requests,
    )
    if resources == before:
        return template
    spec = msgspec.structs.replace(template.spec, domain=msgspec.structs.replace(domain, resources=resources))
    return msgspec.structs.replace(template, spec=spec)


def without(hardware: ClassPayload, mhz: int) -> ClassPayload:
    """Return the class without what `limited` does, for the translation, which cannot do it. Pure."""
    if hardware.resource_limits is None or not _counts(hardware, mhz):
        return hardware
    return msgspec.structs.replace(
        hardware, resource_limits=msgspec.structs.replace(hardware.resource_limits, cpu_limit=None, cpu_reservation=None)
    )


def _counts(hardware: ClassPayload, mhz: int) -> bool:
    """Return whether MHz can be counted: not for a machine that has processors to itself."""
    profile = hardware.performance_profile
    return mhz > 0 and (profile is None or profile.latency_sensitivity != "high")


def _share(count: int | None, mhz: int) -> int:
    """Thousandths of a processor."""
    return max(1, round(count * 1000 / mhz)) if count else 0
