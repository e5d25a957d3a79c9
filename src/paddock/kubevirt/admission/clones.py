"""VirtualMachineClone at admission: a target that has no name gets one, so that whoever made the clone can look for the machine."""

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds import clone as clones
from paddock.kubevirt.plan.snapshots.clones import target_name
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_TARGET = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine"}


class CloneStrategy(CustomStrategy):
    """A clone names its target."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Name the target after the source."""
        try:
            clone = from_data(new, clones.VirtualMachineClone)
        except (msgspec.ValidationError, PaddockError):
            # What cannot be read is refused by the schema, with everything else that is wrong.
            return new
        target = clone.spec.target
        if clone.spec.source.name and (target is None or not target.name):
            given = new["spec"].get("target") or _TARGET
            new["spec"]["target"] = {**given, "name": target_name(clone)}
        return new


def strategies() -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind."""
    return {(kind.group, kind.kind): CloneStrategy() for kind in clones.KINDS}
