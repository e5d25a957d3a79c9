"""Settings of VirtRigaud's controllers, fixed when the program starts."""

import msgspec

from paddock.plan.virtrigaud.status import MachinePolls


class VirtrigaudSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Choices, each with its default."""

    # machines, and Providers, that are reconciled at a time
    workers: int = 10
    provider_workers: int = 5
    # every object is reconciled again this often; what a provider does is polled
    resync_seconds: float = 600.0
    polls: MachinePolls = MachinePolls()
