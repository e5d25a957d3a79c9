"""All of it, put together: `SubresourceApi(world).serve(api)`."""

from collections.abc import Iterator

from paddock.app.subresources import group
from paddock.app.subresources.consolelog import ConsoleOutput
from paddock.app.subresources.environment import SubresourceEnvironment
from paddock.app.subresources.expansion import MachineExpansion
from paddock.app.subresources.freezer import GuestFreezer
from paddock.app.subresources.graph import Graphs
from paddock.app.subresources.group import SubresourceRow
from paddock.app.subresources.guestexec import GuestCommands
from paddock.app.subresources.guestfile import GuestFiles
from paddock.app.subresources.guestinfo import GuestInfo
from paddock.app.subresources.installation import InstallationApi
from paddock.app.subresources.instances import InstanceControl, InstanceFinder
from paddock.app.subresources.lifecycle import Lifecycle
from paddock.app.subresources.memorydump import MemoryDumps
from paddock.app.subresources.sessions import Sessions
from paddock.app.subresources.stored import StoredObjects
from paddock.app.subresources.streams import Streams
from paddock.app.subresources.suspension import MachineSuspension
from paddock.app.subresources.usagehistory import UsageHistories
from paddock.app.subresources.volumes import VolumeRequests
from paddock.kubernetes import releases
from paddock.server.api import Api, Subhandler
from paddock.server.resources.kubevirtsubresources import GRANTS, INSTANCES, MACHINES


class SubresourceApi:
    """The API of the group `subresources.kubevirt.io`."""

    def __init__(self, environment: SubresourceEnvironment) -> None:
        stored = StoredObjects(environment.parts)
        instances = InstanceFinder(stored, environment)
        self._release = environment.kubevirt_release
        self._installation = InstallationApi(stored, releases.name_of(self._release))
        self._registry = environment.parts.registry
        self._lifecycle = Lifecycle(stored)
        self._suspension = MachineSuspension(instances, self._lifecycle)
        self._control = InstanceControl(instances)
        self._freezing = GuestFreezer(instances)
        self.sessions = Sessions(environment.parts.clock)
        self._streams = Streams(instances, environment.networks, self._installation, self.sessions)
        self._guest = GuestInfo(instances)
        self._commands = GuestCommands(instances)
        self._files = GuestFiles(instances)
        self._consoles = ConsoleOutput(stored, environment.machines, environment.consoles)
        self._usage = UsageHistories(stored, environment.usage)
        self._volumes = VolumeRequests(stored)
        self._dumps = MemoryDumps(stored)
        self._expanding = MachineExpansion(stored, self._installation)
        self._graphs = Graphs(stored, self._installation)

    def serve(self, api: Api) -> None:
        group.serve(self._registry, api, self.rows())

    async def close(self) -> None:
        """Leave nothing behind that only this program would undo."""
        await self._freezing.close()

    def rows(self) -> Iterator[SubresourceRow]:
        """Yield every path: those that roles grant, and the profiler's, which belongs to no role."""
        handlers = {MACHINES: self._of_machines(), INSTANCES: self._of_instances(), "": self._of_the_installation()}
        for grant in GRANTS:
            for name in grant.names:
                path = (grant.plural, name) if grant.plural else (name, "")
                handler = handlers[grant.plural].pop(name)
                if not releases.has_subresource(grant.plural, name, self._release):
                    continue
                yield SubresourceRow(*path, grant.verb, handler, below=name == "portforward", namespaced=grant.verb != "list")
        if any(handlers.values()):
            raise ValueError(f"these handlers need a grant in kubevirtsubresources.py: {handlers}")
        for verb in ("start", "stop", "dump"):
            for method in ("list", "update"):
                yield SubresourceRow(f"{verb}-cluster-profiler", "", method, self._installation.profiler, namespaced=False)

    def _of_machines(self) -> dict[str, Subhandler]:
        return {
            "start": self._lifecycle.start,
            "stop": self._lifecycle.stop,
            "restart": self._lifecycle.restart,
            "migrate": self._lifecycle.migrate,
            "suspend": self._suspension.suspend,
            "resume": self._suspension.resume,
            "addvolume": self._volumes.add_to_machine,
            "removevolume": self._volumes.remove_from_machine,
            "memorydump": self._dumps.request,
            "removememorydump": self._dumps.remove,
            "evacuate/cancel": self._control.cancel_evacuation,
            "expand-spec": self._expanding.stored,
            "consolelog": self._consoles.of_machine,
            "usagehistory": self._usage.of_machine,
            "objectgraph": self._graphs.draw,
            "portforward": self._streams.forward,
        }

    def _of_instances(self) -> dict[str, Subhandler]:
        return {
            "pause": self._control.pause,
            "unpause": self._control.unpause,
            "freeze": self._freezing.freeze,
            "unfreeze": self._freezing.unfreeze,
            "softreboot": self._control.reboot,
            "reset": self._control.reset,
            "renew": self._control.renew,
            "guestexec": self._commands.run,
            "guestfile": self._files.transfer,
            "consolelog": self._consoles.of_instance,
            "usagehistory": self._usage.of_instance,
            "addvolume": self._volumes.add_to_instance,
            "removevolume": self._volumes.remove_from_instance,
            "evacuate/cancel": self._control.cancel_evacuation,
            "sev/setupsession": self._installation.attestation,
            "sev/injectlaunchsecret": self._installation.attestation,
            "backup": self._installation.backup,
            "redefine-checkpoint": self._installation.backup,
            "guestosinfo": self._guest.everything,
            "userlist": self._guest.users,
            "filesystemlist": self._guest.filesystems,
            "objectgraph": self._graphs.draw,
            "sev/fetchcertchain": self._installation.attestation,
            "sev/querylaunchmeasurement": self._installation.attestation,
            "console": self._streams.console,
            "vnc": self._streams.vnc,
            "vnc/screenshot": self._streams.screenshot,
            "usbredir": self._streams.usb,
            "vsock": self._streams.vsock,
            "portforward": self._streams.forward,
        }

    def _of_the_installation(self) -> dict[str, Subhandler]:
        return {
            "expand-vm-spec": self._expanding.given,
            "version": self._installation.version,
            "guestfs": self._installation.guestfs,
            "healthz": self._installation.health,
        }
