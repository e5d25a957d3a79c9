"""The installation as clients see it: version, images, health, and the feature gates of KubeVirt's configuration."""

import paddock
from paddock.app.subresources import queries
from paddock.app.subresources.stored import StoredObjects
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server import health
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse

_PLACE = ("kubevirts.kubevirt.io", "kubevirt", "kubevirt")
_NO_PODS = "there are no pods here; look into a disk with qemu-img and guestfish on the host"


class InstallationApi:
    def __init__(self, stored: StoredObjects, release: str) -> None:
        """`release` is the version of KubeVirt that clients see."""
        self._stored = stored
        self._release = release

    def has(self, gate: str) -> bool:
        """Return whether a feature gate is enabled."""
        switches = self._configuration().get("developerConfiguration") or {}
        return gate in (switches.get("featureGates") or ()) and gate not in (switches.get("disabledFeatureGates") or ())

    @property
    def default_binding(self) -> str:
        """The binding of a machine's card on the pod network that has none."""
        return (self._configuration().get("network") or {}).get("defaultNetworkInterface") or "bridge"

    def _configuration(self) -> Data:
        spec = (self._stored.find(*_PLACE) or {}).get("spec") or {}
        return spec.get("configuration") or {}

    def check(self, gate: str) -> None:
        """Raise 400 unless a feature is switched on."""
        if not self.has(gate):
            raise failure.bad_request(f"'{gate}' feature gate is not enabled")

    async def version(self, call: RequestContext) -> HttpResponse:
        """As KubeVirt's clients compare it with their own; our name stands in the build metadata."""
        return queries.said({**health.version(), "gitVersion": f"{self._release}+paddock.{paddock.__version__}"})

    async def guestfs(self, call: RequestContext) -> HttpResponse:
        """The image that `virtctl guestfs` would run in a pod. There is none: the pod is refused, and that says why."""
        return queries.said({"registry": "", "tag": self._release, "digest": "", "imagePrefix": "", "gsImage": ""})

    async def health(self, call: RequestContext) -> HttpResponse:
        """Answer every authorized client."""
        return queries.said({"apiserver": {"connectivity": "ok", "version": self._release}})

    async def profiler(self, call: RequestContext) -> HttpResponse:
        """Starting, stopping and dumping profiles of the installation's pods."""
        verb = call.route.plural.partition("-")[0]
        what = "dump profiler results" if verb == "dump" else f"{verb} profiler"
        if not self.has("ClusterProfiler"):
            raise failure.Failure(403, "Forbidden", f'Unable to {what}. "ClusterProfiler" feature gate must be enabled')
        raise failure.Failure(403, "Forbidden", f"Unable to {what}: {_NO_PODS.split(';')[0]}")

    async def attestation(self, call: RequestContext) -> HttpResponse:
        """AMD SEV, which this engine does not give to machines."""
        self.check("WorkloadEncryptionSEV")
        self._stored.instance(call.route.namespace, call.route.name)
        raise failure.bad_request("this host starts no machines with AMD SEV: its QEMU gives them no encrypted memory")

    async def backup(self, call: RequestContext) -> HttpResponse:
        """What KubeVirt's controller asks of a launcher. Users make objects for it."""
        self.check("IncrementalBackup")
        self._stored.instance(call.route.namespace, call.route.name)
        raise failure.bad_request("backups are taken by the engine itself: make a VirtualMachineBackup")
