"""The abilities of the endpoint: a vCenter has templates and clones, an ESXi host has not."""

from pyVmomi import vim

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock_drivers.kit import conversion
from paddock_drivers.vsphere import disks
from paddock_drivers.vsphere.target import VSphereTarget
from paddock_drivers.vsphere.transfers import IMPORT_FORMATS

_NETWORK_TYPES = ("standard", "distributed")
# What a class says is obeyed, or named as a limitation.
FEATURES = (
    features.RESOURCE_POOL,
    features.DISKS,
    features.GUEST_TOOLS,
    features.RESOURCE_LIMITS,
    features.PERFORMANCE,
    features.SECURITY,
    features.DISK_IOPS,
    features.DISK_STORAGE,
    features.NETWORK_ROUTES,
    features.NETWORK_SEARCH,
    features.IMAGE_CREDENTIALS,
    f"{features.IMAGE_PREPARE}.storage.vsphere",
    features.DATASTORES,
    features.IMAGE_DELETE,
    features.TRANSFER_DELETE,
    features.CLONE_SNAPSHOT,
)


class EndpointCapabilities:
    """Finds out what the endpoint can do."""

    def __init__(self, target: VSphereTarget, backends: tuple[str, ...]) -> None:
        self._target = target
        self._backends = backends

    def validate(self) -> m.ValidateResponse:
        """Say whether the endpoint can be reached with the credentials, and has a datacenter. The session is kept alive by it."""
        found = self._target.inventory.every(vim.Datacenter, ("name",))
        if not found:
            return m.ValidateResponse(ok=False, message="the account sees no datacenter; give it a role on one")
        self._target.inventory.datacenter()
        return m.ValidateResponse(ok=True)

    def find(self) -> m.GetCapabilitiesResponse:
        """Return what can be done here."""
        return m.GetCapabilitiesResponse(
            supports_reconfigure_online=True,
            supports_disk_expansion_online=True,
            supports_snapshots=True,
            supports_memory_snapshots=True,
            supports_linked_clones=self._target.connection.is_vcenter,
            supports_image_import=True,
            supported_disk_types=disks.TYPES,
            supported_network_types=_NETWORK_TYPES,
            supports_disk_export=True,
            supports_disk_import=True,
            supported_export_formats=conversion.formats(),
            supported_import_formats=IMPORT_FORMATS,
            supports_export_compression=conversion.can_compress(),
            supported_export_backends=self._backends,
            supported_import_backends=self._backends,
            supported_transfer_modes=("relay",),
        )

    def features(self) -> x.GetFeaturesResponse:
        """Return what can be done here beyond upstream's contract."""
        return x.GetFeaturesResponse(features=FEATURES)
