"""Pools of machines: one stored form, two groups that show it, and the flat form that is taken everywhere (docs/spec/kubevirt.md 1.4)."""

from collections.abc import Iterator

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, KindFacts
from paddock.kubevirt.admission.gated import GatedStrategy
from paddock.kubevirt.admission.machines import size_findings
from paddock.kubevirt.kinds import pool, poolform
from paddock.kubevirt.rules import pool as rules_pool
from paddock.server.resources.declared import collection_of
from paddock.server.resources.resource import ServedResource
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_KIND = "VirtualMachinePool"
_ALIAS = "kubevirt.io"


class PoolStrategy(GatedStrategy):
    """Pools as `pool.kubevirt.io` has them: nested, whatever is sent."""

    def __init__(self, settings: AdmissionSettings) -> None:
        self._settings = settings

    def complete(self, new: Data) -> None:
        """A flat pool is folded."""
        poolform.folded(new)

    def patchable(self, patch: Data) -> Data:
        """A patch of flat places is one of the nested ones."""
        return poolform.moved(patch)

    def appliable(self, config: Data, said: list[str]) -> Data:
        """Return the nested form of a flat configuration: ownership refers to the stored form."""
        return poolform.folded(config)

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Instancetype and preference agree with what the machines say (V15, V16); one that does not exist is a warning."""
        if not self._settings.controllers or (old is not None and new.get("spec") == old.get("spec")):
            return
        place = rules_pool.place_of(from_data(new, pool.VirtualMachinePool), self._settings)
        if place.spec.instancetype is not None or place.spec.preference is not None:
            around = msgspec.structs.replace(place, namespace=new["metadata"].get("namespace", ""))
            yield from size_findings(around, context.view)


class FlatPoolStrategy(PoolStrategy):
    """Pools as Kubermatic's documents have them: flat, as far as that form can say it."""

    def complete(self, new: Data) -> None:
        """A nested pool that the flat form can say is flat here."""
        poolform.unfolded(new)

    def patchable(self, patch: Data) -> Data:
        """Patches are of the flat form already."""
        return patch

    def appliable(self, config: Data, said: list[str]) -> Data:
        """Return the flat form of a configuration: ownership refers to the form that clients see."""
        return poolform.unfolded(config)


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies of both groups."""
    return {(pool.GROUP, _KIND): PoolStrategy(settings), (_ALIAS, _KIND): FlatPoolStrategy(settings)}


def aliased(resource: ServedResource, kind: KindFacts) -> ServedResource:
    """A resource of a kind that shows the objects of another: they are stored once, in the other's form."""
    if kind.alias_of is None:
        return resource
    (group, _), (stored,) = kind.alias_of, pool.KINDS
    return msgspec.structs.replace(
        resource,
        collection=collection_of(group, resource.plural),
        stored_version=stored.api_version,
        to_stored=poolform.folded,
        from_stored=poolform.unfolded,
    )
