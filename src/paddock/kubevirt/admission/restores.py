"""VirtualMachineRestores at admission: a machine has one at a time."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import restore
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_RULE = "kubevirt/restore-in-progress"
_COLLECTION = "virtualmachinerestores.snapshot.kubevirt.io"


class RestoreStrategy(CustomStrategy):
    """A restore of a machine that another one restores is refused."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The target has no restore that is neither complete nor failed."""
        target = (new.get("spec") or {}).get("target") or {}
        if old is not None or not target:
            return
        for other in context.view.list(_COLLECTION, new["metadata"].get("namespace", "")):
            if other["spec"].get("target") == target and not _is_over(other.get("status") or {}):
                text = f'VirtualMachineRestore "{other["metadata"]["name"]}" in progress'
                yield finding.invalid(("spec", "target"), target.get("name"), text, _RULE)


def _is_over(status: Data) -> bool:
    failed = any(each.get("type") == "Failure" and each.get("status") == "True" for each in status.get("conditions") or ())
    return failed or status.get("complete") is True


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategy by group and kind. Where no controllers are, restores are plain objects."""
    (kind,) = restore.KINDS
    return {(kind.group, kind.kind): RestoreStrategy()} if settings.controllers else {}
