"""All of it, put together: `SubresourceApi(world).serve(api)`."""

from collections.abc import Iterator

from paddock.apiserver.api import Api
from paddock.app.subresources import group
from paddock.app.subresources.environment import SubresourceEnvironment
from paddock.app.subresources.expansion import MachineExpansion
from paddock.app.subresources.freezer import GuestFreezer
from paddock.app.subresources.graph import Graphs
from paddock.app.subresources.group import SubresourceRow
from paddock.app.subresources.guestinfo import GuestInfo
from paddock.app.subresources.installation import InstallationApi
from paddock.app.subresources.instances import InstanceControl, InstanceFinder
from paddock.app.subresources.lifecycle import Lifecycle
from paddock.app.subresources.memorydump import MemoryDumps
from paddock.app.subresources.sessions import Sessions
from paddock.app.subresources.stored import INSTANCES, MACHINES, StoredObjects
from paddock.app.subresources.streams import Streams
from paddock.app.subresources.volumes import VolumeRequests

_GET, _PUT = "get", "update"


class SubresourceApi:
    """What is served in `subresources.kubevirt.io`."""

    def __init__(self, world: SubresourceEnvironment) -> None:
        stored = StoredObjects(world.parts)
        instances = InstanceFinder(stored, world)
        self._installation = InstallationApi(stored)
        self._registry = world.parts.registry
        self._lifecycle = Lifecycle(stored)
        self._control = InstanceControl(instances)
        self._freezing = GuestFreezer(instances)
        self.sessions = Sessions(world.parts.clock)
        self._streams = Streams(instances, world.networks, self._installation, self.sessions)
        self._guest = GuestInfo(instances)
        self._volumes = VolumeRequests(stored)
        self._dumps = MemoryDumps(stored)
        self._expanding = MachineExpansion(stored)
        self._graphs = Graphs(stored, self._installation)

    def serve(self, api: Api) -> None:
        """Answer for the group."""
        group.serve(self._registry, api, self.rows())

    async def close(self) -> None:
        """Leave nothing behind that only this program would undo."""
        await self._freezing.close()

    def rows(self) -> Iterator[SubresourceRow]:
        """Every path."""
        yield from self._of_machines()
        yield from self._of_instances()
        yield from self._of_streams()
        yield from self._of_the_installation()

    def _of_machines(self) -> Iterator[SubresourceRow]:
        changing = {
            "start": self._lifecycle.start,
            "stop": self._lifecycle.stop,
            "restart": self._lifecycle.restart,
            "migrate": self._lifecycle.migrate,
            "addvolume": self._volumes.add_to_machine,
            "removevolume": self._volumes.remove_from_machine,
            "memorydump": self._dumps.request,
            "removememorydump": self._dumps.remove,
            "evacuate/cancel": self._control.cancel_evacuation,
        }
        for name, handler in changing.items():
            yield SubresourceRow(MACHINES, name, _PUT, handler)
        yield SubresourceRow(MACHINES, "expand-spec", _GET, self._expanding.stored)
        yield SubresourceRow(MACHINES, "objectgraph", _GET, self._graphs.draw)
        yield SubresourceRow("expand-vm-spec", "", _PUT, self._expanding.given)

    def _of_instances(self) -> Iterator[SubresourceRow]:
        changing = {
            "pause": self._control.pause,
            "unpause": self._control.unpause,
            "freeze": self._freezing.freeze,
            "unfreeze": self._freezing.unfreeze,
            "softreboot": self._control.reboot,
            "reset": self._control.reset,
            "renew": self._control.renew,
            "addvolume": self._volumes.add_to_instance,
            "removevolume": self._volumes.remove_from_instance,
            "evacuate/cancel": self._control.cancel_evacuation,
            "sev/setupsession": self._installation.attestation,
            "sev/injectlaunchsecret": self._installation.attestation,
            "backup": self._installation.backup,
            "redefine-checkpoint": self._installation.backup,
        }
        for name, handler in changing.items():
            yield SubresourceRow(INSTANCES, name, _PUT, handler)
        looking = {
            "guestosinfo": self._guest.everything,
            "userlist": self._guest.users,
            "filesystemlist": self._guest.filesystems,
            "objectgraph": self._graphs.draw,
            "sev/fetchcertchain": self._installation.attestation,
            "sev/querylaunchmeasurement": self._installation.attestation,
        }
        for name, handler in looking.items():
            yield SubresourceRow(INSTANCES, name, _GET, handler)

    def _of_streams(self) -> Iterator[SubresourceRow]:
        yield SubresourceRow(INSTANCES, "console", _GET, self._streams.console)
        yield SubresourceRow(INSTANCES, "vnc", _GET, self._streams.vnc)
        yield SubresourceRow(INSTANCES, "vnc/screenshot", _GET, self._streams.screenshot)
        yield SubresourceRow(INSTANCES, "usbredir", _GET, self._streams.usb)
        yield SubresourceRow(INSTANCES, "vsock", _GET, self._streams.vsock)
        for plural in (MACHINES, INSTANCES):
            yield SubresourceRow(plural, "portforward", _GET, self._streams.forward, below=True)

    def _of_the_installation(self) -> Iterator[SubresourceRow]:
        # Paths without a name are lists to whoever reads the rights of a user.
        looking = {"version": self._installation.version, "guestfs": self._installation.guestfs, "healthz": self._installation.health}
        for name, handler in looking.items():
            yield SubresourceRow(name, "", "list", handler, namespaced=False)
        for verb in ("start", "stop", "dump"):
            for method in ("list", _PUT):
                yield SubresourceRow(f"{verb}-cluster-profiler", "", method, self._installation.profiler, namespaced=False)
