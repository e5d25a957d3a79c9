"""All resources that are there from the start: every declared kind with its strategy, and the kinds that only a server has."""

from collections.abc import Iterator

import msgspec

from paddock.apiserver.builtin import namespaces, rbac, rbacrules, reviews
from paddock.apiserver.resources.declared import resources_of
from paddock.apiserver.resources.resource import Resource, Subresource
from paddock.apiserver.resources.strategy import Strategy
from paddock.apiserver.security.rbac import Rbac
from paddock.dialects import catalog
from paddock.schema.kind import Kind, Settings


def resources(settings: Settings, judge: Rbac) -> Iterator[Resource]:
    """Every resource of the start."""
    for kind in (*catalog.every(), *rbac.KINDS, *reviews.KINDS):
        for resource in resources_of(kind, settings, _strategy(kind, judge)):
            yield _completed(resource)


def _strategy(kind: Kind, judge: Rbac) -> Strategy | None:
    if (kind.group, kind.kind) == ("", "Namespace"):
        return namespaces.NamespaceStrategy()
    if kind.group == rbac.GROUP:
        return rbacrules.strategy_of(kind.plural, judge)
    return None


def _completed(resource: Resource) -> Resource:
    """What a declaration does not say of a built-in kind."""
    if (resource.group, resource.kind) == ("", "Namespace"):
        verbs = tuple(verb for verb in resource.verbs if verb != "deletecollection")
        finalize = Subresource("finalize", ("update",))
        return msgspec.structs.replace(resource, verbs=verbs, subresources=(*resource.subresources, finalize))
    if (resource.group, resource.kind) == ("", "ServiceAccount"):
        token = Subresource("token", ("create",), "TokenRequest", f"{reviews.AUTHENTICATION}/v1")
        return msgspec.structs.replace(resource, subresources=(*resource.subresources, token))
    return resource
