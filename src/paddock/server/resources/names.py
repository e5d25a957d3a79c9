"""Short names that several declared kinds have: the kind whose group clients look at first owns each.

KubeVirt and VirtRigaud both call a machine `vm`. kubectl would take KubeVirt's and warn about the other at every command, and it prefers a
singular (VirtRigaud's `vmsnapshot`) to a short name (KubeVirt's). So discovery lists each such name once. Kinds that users define
keep their names: Kubernetes publishes those as they are.
"""

from collections.abc import Mapping

import msgspec

from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource

# A short name -> the collection whose kind it means.
Owners = Mapping[str, str]


def owners(registry: ResourceRegistry) -> Owners:
    """Return the owner of every short name of the declared kinds."""
    found: dict[str, str] = {}
    for group, versions in registry.groups().items():
        for version in versions:
            for resource in registry.of_version(group, version):
                for name in resource.short_names if resource.declared else ():
                    found.setdefault(name, resource.collection)
    return found


def published(resource: ServedResource, owners: Owners) -> ServedResource:
    """Return the resource without names that another one owns.

    Clients that find no singular use the kind in lower case, after they have looked at short names.
    """
    if not resource.declared:
        return resource
    short_names = tuple(name for name in resource.short_names if owners.get(name) == resource.collection)
    singular = resource.singular if owners.get(resource.singular, resource.collection) == resource.collection else ""
    if (short_names, singular) == (resource.short_names, resource.singular):
        return resource
    return msgspec.structs.replace(resource, short_names=short_names, singular=singular)
