"""Settings of a run of the suite."""

from typing import Any

import msgspec

from paddock.contract import payloads


class ConformanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The needs of a provider that is judged, and the patience of the suite. Times are in seconds."""

    # where machines come from, and the hardware of the smallest
    image: payloads.ImagePayload = payloads.ImagePayload(template_name="conformance")
    cpu: int = 1
    memory_mib: int = 512
    # 0: as large as the image
    disk_gib: int = 0
    networks: tuple[payloads.NetworkPayload, ...] = ()
    # the spec of a VMImage that the provider can prepare; None skips these cases
    prepare: dict[str, Any] | None = None
    # the beginning of staging URLs, as pvc://CLAIM/FOLDER; empty skips the cases of exports and imports
    transfer_url: str = ""
    # where the suite sees that folder; empty: it does not, and believes the checksums
    transfer_directory: str = ""
    # a command that a guest of the image can run, and which succeeds; empty skips the cases of commands
    command: tuple[str, ...] = ()
    # the names of everything that the suite makes begin with it
    prefix: str = "conformance"
    task_seconds: float = 600.0
    # a guest that was started takes commands after so long
    boot_seconds: float = 180.0
    # an effect must be visible this long after the task's end
    settle_seconds: float = 5.0
    poll_seconds: float = 0.2
    # the longest wait for an answer; the contract's deadline if that is shorter
    call_seconds: float = 1800.0
