"""VirtualMachineInstanceMigration at admission: it is of an instance that there is, and its priority is for controllers."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import gates
from paddock.server.builtin.trust import is_trusted
from paddock.server.resources.strategy import CustomStrategy, WriteContext

PLACE = ("kubevirt.io", "VirtualMachineInstanceMigration")
_RULE, _GATE = "kubevirt/migration", "DecentralizedLiveMigration"


class MigrationStrategy(CustomStrategy):
    """A migration of an instance."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Yield what is wrong with a new migration; nothing of it changes later."""
        if old is not None:
            return
        spec = new.get("spec") or {}
        name, namespace = spec.get("vmiName") or "", new["metadata"].get("namespace", "")
        if not name:
            yield finding.required(("spec", "vmiName"), _RULE, "vmiName is missing")
        elif context.view.get("virtualmachineinstances.kubevirt.io", namespace, name) is None:
            message = f'Not found: the VMI "{name}" does not exist under the cluster'
            yield Finding(path=("spec", "vmiName"), message=message, rule=_RULE, cause=CauseType.NOT_FOUND)
        yield from _between_servers(spec, context)
        if spec.get("priority") and not is_trusted(context):
            yield finding.forbidden(("spec", "priority"), "only KubeVirt's controllers say a priority; leave it out", _RULE)


def _between_servers(spec: Data, context: WriteContext) -> Iterator[Finding]:
    """Yield what is wrong with a migration to or from another server."""
    sides = [spec[side] for side in ("sendTo", "receive") if isinstance(spec.get(side), dict)]
    installations = dict(context.view.noted("kubevirts.kubevirt.io", gates.of_installation))
    cluster = installations.get(("kubevirt", "kubevirt"))
    if sides and (cluster is None or _GATE not in cluster.on):
        message = f"{_GATE} feature gate is not enabled in kubevirt resource"
        yield Finding(path=("spec",), message=message, rule=_RULE, cause=CauseType.NOT_SUPPORTED)
    if len({side.get("migrationID") for side in sides}) > 1:
        first, second = (side.get("migrationID") for side in sides)
        yield finding.invalid(
            ("spec", "receive", "migrationID"), second, f"sendTo migrationID {first} does not match receive migrationID {second}", _RULE
        )


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind. Where no controllers are, migrations are plain objects."""
    return {PLACE: MigrationStrategy()} if settings.controllers else {}
