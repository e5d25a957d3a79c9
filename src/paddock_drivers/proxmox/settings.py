import msgspec

from paddock_drivers.kit.staging import StagingSettings


class ProxmoxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that the cluster does not hold itself. Times are in seconds."""

    # https://HOST:8006, for the URLs of consoles
    server: str = ""
    # the user or token that tasks of ours have; empty: not known
    account: str = ""
    # storages for disks, for images and imported disks, and for the documents of guests; empty: the one with the most free space
    storage: str = ""
    import_storage: str = ""
    iso_storage: str = ""
    # nodes that machines may be made on; empty: all
    nodes: tuple[str, ...] = ()
    # where a network that names no bridge is
    bridge: str = "vmbr0"
    # of machines that are not made from a template
    cpu_type: str = "x86-64-v2-AES"
    # copy a template's disks; otherwise the new ones stand on top of them
    full_clones: bool = True
    # the storage between providers that the driver reaches
    staging: StagingSettings = StagingSettings()
    # the first and the longest pause between two looks at a task
    poll_seconds: float = 0.25
    most_poll_seconds: float = 5.0
    # how old the configuration of a machine in a list may be, if the cluster's summary of it has not changed
    list_seconds: float = 300.0
    # configurations that are read at once
    most_reads: int = 12
    # how long the work of one call may take
    work_seconds: float = 6 * 3600.0
