"""Settings of VirtRigaud's controllers, fixed when the program starts."""

import msgspec

from paddock.dialects.virtrigaud.plan.polls import MachinePolls


class VirtrigaudSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Choices, each with its default."""

    # machines, Providers and snapshots that are reconciled at a time
    workers: int = 10
    provider_workers: int = 5
    snapshot_workers: int = 4
    # every object is reconciled again this often; what a provider does is polled
    resync_seconds: float = 600.0
    polls: MachinePolls = MachinePolls()
    # migrations that are reconciled at a time
    migration_workers: int = 3
    # hosts of buckets and NFS exports that migrations may use, as names or *.suffixes; none: every host that is not refused
    migration_storage_allowed_hosts: tuple[str, ...] = ()
