"""The defaults of a Stakater machine that depend on other fields, in one place for rules and translation."""

from paddock.dialects.stakater.kinds.fields import AdditionalDisk, FirmwareParameters, NetworkParameters, StorageParameters

# What `networks` means when it is not given.
DEFAULT_NETWORKS = (NetworkParameters(name="default"),)
CORE_BINDINGS = ("bridge", "masquerade", "sriov")


def network_type(network: NetworkParameters) -> str:
    """`multus` when a NetworkAttachmentDefinition is named, else `pod`."""
    if network.type:
        return network.type
    return "multus" if network.multus and network.multus.networkName else "pod"


def networks(network_parameters: list[NetworkParameters] | None) -> tuple[NetworkParameters, ...]:
    """The networks of the machine; none given means one pod network, an empty list means none."""
    return DEFAULT_NETWORKS if network_parameters is None else tuple(network_parameters)


def secure_boot(firmware: FirmwareParameters, architecture: str) -> bool:
    """Secure Boot follows EFI unless it is given; arm64 has none."""
    if architecture == "arm64":
        return False
    return firmware.efi if firmware.secureBoot is None else firmware.secureBoot


def disk_class(disk: AdditionalDisk, storage: StorageParameters) -> str | None:
    """The StorageClass of an additional disk: its own, else the root disk's, else the cluster's default."""
    return disk.storageClassName or storage.storageClassName
