"""VirtualMachineRestores, and VirtualMachineBackups with their trackers, at admission: a machine has one at a time.

Backups are behind the gate of KubeVirt, and in no mode that nothing serves.
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import backup, gates, restore
from paddock.kubevirt.plan.snapshots import tracking
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_RULE = "kubevirt/restore-in-progress"
_COLLECTION = "virtualmachinerestores.snapshot.kubevirt.io"
_GATE, _ONE, _MODE = "kubevirt/backup-gate", "kubevirt/backup-in-progress", "kubevirt/backup-mode"
_BACKUPS = "virtualmachinebackups.backup.kubevirt.io"
_PULL = "this server has no backups to pull: leave it out, and download the claim with a VirtualMachineExport"


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


class TrackerStrategy(CustomStrategy):
    """Behind the gate of KubeVirt."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The gate is on when one is made."""
        cluster = dict(context.view.noted("kubevirts.kubevirt.io", gates.of_installation)).get(("kubevirt", "kubevirt"))
        if old is None and (cluster is None or tracking.GATE not in cluster.on or tracking.GATE in cluster.off):
            why = f"{tracking.GATE} feature gate not enabled"
            yield Finding(path=("spec",), message=why, rule=_GATE)


class BackupStrategy(TrackerStrategy):
    """A source has one backup at a time."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The gate is on, the mode is Push, and no other backup of the source is under way."""
        yield from super().validate(new, old, context)
        spec = new.get("spec") or {}
        if old is not None or not isinstance(spec, dict):
            return
        if spec.get("mode") == "Pull":
            yield finding.invalid(("spec", "mode"), "Pull", _PULL, _MODE)
        for other in context.view.list(_BACKUPS, new["metadata"].get("namespace", "")):
            if other["spec"].get("source") == spec.get("source") and not _has_ended(other.get("status") or {}):
                text = f'VirtualMachineBackup "{other["metadata"]["name"]}" in progress for source'
                yield finding.invalid(("spec", "source"), (spec.get("source") or {}).get("name"), text, _ONE)


def _has_ended(status: Data) -> bool:
    return any(each.get("type") in ("Complete", "Failed") and each.get("status") == "True" for each in status.get("conditions") or ())


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind. Where no controllers are, these are plain objects."""
    if not settings.controllers:
        return {}
    pairs = zip((*restore.KINDS, *backup.KINDS), (RestoreStrategy(), BackupStrategy(), TrackerStrategy()), strict=True)
    return {(kind.group, kind.kind): strategy for kind, strategy in pairs}
