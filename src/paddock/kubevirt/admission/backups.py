"""VirtualMachineBackups and their trackers at admission: the gate, one at a time for a source, and no mode that nothing serves."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import backup, gates
from paddock.kubevirt.plan.backups import tracking
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_GATE, _ONE, _MODE = "kubevirt/backup-gate", "kubevirt/backup-in-progress", "kubevirt/backup-mode"
_COLLECTION = "virtualmachinebackups.backup.kubevirt.io"
_PULL = "this server has no backups to pull: leave it out, and download the claim with a VirtualMachineExport"


class TrackerStrategy(CustomStrategy):
    """Behind the gate of KubeVirt."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The gate is on."""
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
        for other in context.view.list(_COLLECTION, new["metadata"].get("namespace", "")):
            if other["spec"].get("source") == spec.get("source") and not _is_over(other.get("status") or {}):
                text = f'VirtualMachineBackup "{other["metadata"]["name"]}" in progress for source'
                yield finding.invalid(("spec", "source"), (spec.get("source") or {}).get("name"), text, _ONE)


def _is_over(status: Data) -> bool:
    return any(each.get("type") in ("Complete", "Failed") and each.get("status") == "True" for each in status.get("conditions") or ())


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind. Where no controllers are, backups are plain objects."""
    if not settings.controllers:
        return {}
    pairs = zip(backup.KINDS, (BackupStrategy(), TrackerStrategy()), strict=True)
    return {(kind.group, kind.kind): strategy for kind, strategy in pairs}
