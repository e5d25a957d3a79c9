"""Machines that wait for a guest of another server (docs/design/0038-live-migration.md). Pure."""

from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import RUN_STRATEGIES, VirtualMachine

STRATEGY = "WaitAsReceiver"
# of an instance: it has no guest until one comes
TARGET = "kubevirt.io/create-migration-target"
# of a machine: its strategy once the guest is there
RESTORED = "kubevirt.io/restore-run-strategy"


def is_receiver(instance: VirtualMachineInstance) -> bool:
    """Return whether an instance has no guest of its own, and never boots one."""
    return (instance.metadata.annotations or {}).get(TARGET) == "true"


def restored(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> str | None:
    """Return the strategy that a machine gets because its guest has arrived; None: it keeps its own."""
    wanted = (machine.metadata.annotations or {}).get(RESTORED)
    state = instance.status.migrationState if instance is not None and instance.status is not None else None
    if instance is None or is_receiver(instance) or state is None or not state.completed or state.failed:
        return None
    return wanted if wanted in RUN_STRATEGIES and wanted != STRATEGY else None
