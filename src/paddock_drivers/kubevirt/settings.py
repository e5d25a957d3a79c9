from pathlib import Path

import msgspec

from paddock.contract.description import DescriptionTranslator
from paddock_drivers.kit.staging import StagingSettings


class KubeVirtDriverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The place where machines are kept, and what the target does not say itself."""

    # what makes a machine's objects
    translation: DescriptionTranslator
    namespace: str = "default"
    # the address under which users reach the target's API, for the URLs of consoles
    server: str = ""
    # value of the label app.kubernetes.io/managed-by
    product: str = "paddock"
    # of machines whose image does not say it
    architecture: str = "amd64"
    # MHz of a processor, by which limits in MHz become shares of processors; 0: what the nodes say
    processor_mhz: int = 0
    # size of a prepared image's disk, which the image has to fit into
    image_size: str = "10Gi"
    # size of an imported disk, which the content has to fit into
    disk_size: str = "40Gi"
    # the storage between providers that the driver reaches, and where it may keep files meanwhile; None: the system's place
    staging: StagingSettings = StagingSettings()
    scratch: Path | None = None
    # how long a call waits for a clone to appear; the caller then calls again
    clone_seconds: float = 240.0
    # the pause between two looks at the target
    poll_seconds: float = 1.0
