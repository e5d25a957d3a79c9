"""What an object of VirtRigaud takes of quotas: the machines of a set, and nothing for what another hypervisor runs. Pure."""

from collections.abc import Iterator

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmset import VMSet
from paddock.dialects.virtrigaud.plan.programs import embedded
from paddock.dialects.virtrigaud.plan.sets import templates
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet, namespace_of


def machines(resource: Resource) -> Iterator[Resource]:
    """Yield an object, or the machines of a set."""
    if not isinstance(resource, VMSet):
        yield resource
        return
    revision = templates.revision_of(resource.spec.template)
    for ordinal in range(resource.spec.replicas):
        yield templates.machine(resource, ordinal, revision, resource.spec.template)


def is_elsewhere(resource: Resource, objects: ObjectSet) -> bool:
    """Return whether the Provider of a machine runs it on another hypervisor."""
    if not isinstance(resource, VirtrigaudVirtualMachine):
        return False
    reference = resource.spec.providerRef
    provider = objects.get(Provider, reference.namespace or namespace_of(resource), reference.name)
    return provider is not None and not (provider.spec.type == embedded.OWN_TYPE and embedded.is_here(provider.spec.endpoint))
