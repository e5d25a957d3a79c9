"""Paths that are shaped like resources and have no objects: they are named, listed and guarded as resources are, and served by handlers.

Subresources that stand in a group of their own are such paths: `virtualmachines/start` in `subresources.kubevirt.io`, whose objects
are those of another group.
"""

from typing import Any

from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.pipeline import Decoded
from paddock.server.resources.resource import ServedResource, Subresource
from paddock.server.resources.strategy import PLAIN


class _NoObjects:
    """The pipeline of what is never decoded."""

    schema: dict[str, Any] = {}

    def decode(self, raw: dict[str, Any]) -> Decoded:
        return Decoded(raw)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        return ()


def path_only(
    group: str,
    version: str,
    plural: str,
    *,
    namespaced: bool = True,
    verbs: tuple[str, ...] = (),
    subresources: tuple[Subresource, ...] = (),
) -> ServedResource:
    """A resource for the registry's paths; `verbs` are those on the path itself, for which a handler is registered, too."""
    return ServedResource(
        group=group,
        version=version,
        plural=plural,
        kind="",
        collection="",
        pipeline=_NoObjects(),
        strategy=PLAIN,
        stored_version="",
        namespaced=namespaced,
        verbs=verbs,
        subresources=subresources,
    )
