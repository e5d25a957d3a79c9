"""What an object of VirtRigaud takes of quotas: the machines of a set, and nothing for what another hypervisor runs. Pure."""

from collections.abc import Iterator

from paddock.dialects.virtrigaud.provider import Provider
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.vmset import VMSet
from paddock.meta.objects import Resource
from paddock.meta.world import ObjectSet, namespace_of
from paddock.plan.virtrigaud.programs import embedded
from paddock.plan.virtrigaud.sets import templates


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
