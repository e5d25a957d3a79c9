"""The calls of the extension service: features, commands in guests, deletion of images and exports, datastores.

A guest of the fake driver knows `true`, `false`, `echo`, `sleep` and `exit CODE`, by these names or with a path before them.
"""

import asyncio
from collections.abc import Sequence

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.inventory import FakeInventory, shown
from paddock_drivers.fake.machines import ON
from paddock_drivers.fake.storage import FakeStorage

_ALL = (*features.CALLS, *features.MEMBERS)
_DEADLINE = 300


class FakeExtensions:
    """The extension service of a fake driver."""

    def __init__(self, inventory: FakeInventory, storage: FakeStorage) -> None:
        self._inventory = inventory
        self._storage = storage

    def features(self) -> x.GetFeaturesResponse:
        """All features but those that the settings switch off, or have nothing for."""
        off = self._inventory.settings.without
        found = [each for each in _ALL if not features.has(off, each)]
        capabilities = self._inventory.capabilities
        for feature, able in (
            (features.IMAGE_DELETE, capabilities.supports_image_import),
            (features.TRANSFER_DELETE, capabilities.supports_disk_export),
            (features.DATASTORES, bool(self._inventory.settings.datastores)),
        ):
            if feature in found and not able:
                found.remove(feature)
        return x.GetFeaturesResponse(features=tuple(found))

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run one of the few commands that the guests know."""
        self._require(features.EXEC)
        machine = self._inventory.machine(request.vm_id, request.owner)
        if not request.command or not request.command[0]:
            raise ProviderError(ErrorKind.INVALID_SPEC, "command is invalid", why="it is empty")
        if machine.power != ON:
            raise ProviderError(ErrorKind.CONFLICT, f"machine {machine.id} runs no command", why="it is not running", fix="power it on")
        machine.commands.append(request.command)
        seconds = request.timeout_seconds or _DEADLINE
        try:
            async with asyncio.timeout(seconds):
                return await _run(request.command)
        except TimeoutError:
            raise ProviderError(ErrorKind.TIMEOUT, "the command did not end in time", why=f"it had {seconds} s") from None

    def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image, or an imported disk that no machine has."""
        self._require(features.IMAGE_DELETE)
        images, disks = self._inventory.images, self._inventory.disks
        names = [name for name, each in images.items() if request.image_id == name or request.image_path == each.disk.path]
        paths = [path for path, each in disks.items() if request.image_id == each.id or request.image_path == path]

        def delete() -> None:
            for name in names:
                images.pop(name, None)
            for path in paths:
                disks.pop(path, None)

        return m.TaskResponse(task=self._inventory.work(None, delete)) if names or paths else m.TaskResponse()

    def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        self._require(features.TRANSFER_DELETE)
        path = self._storage.staged("source_url", request.source_url, request.backend_type, request.transfer_mode)
        self._inventory.exports.pop(request.source_url, None)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ProviderError(ErrorKind.UNAVAILABLE, "cannot delete the export", why=error.strerror or str(error)) from error
        return m.TaskResponse()

    def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """The datastores of the settings, with what their machines leave of them."""
        self._require(features.DATASTORES)
        found = (each for each in self._inventory.settings.datastores if request.pod in ("", each.pod))
        return x.ListDatastoresResponse(
            datastores=tuple(
                x.DatastoreInfo(
                    name=each.name,
                    pod=each.pod,
                    free_bytes=max(0, each.free_bytes - self._used(each.name)),
                    total_bytes=each.total_bytes,
                    accessible=each.accessible,
                    maintenance=each.maintenance,
                )
                for each in found
            )
        )

    def _used(self, name: str) -> int:
        here = (each for each in self._inventory.machines.values() if each.datastore == name)
        return sum(disk.size for each in here for disk in each.disks)

    def _require(self, feature: str) -> None:
        if feature not in self.features().features:
            raise ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not have {feature}")


async def _run(command: Sequence[str]) -> x.ExecResponse:
    name, arguments = command[0].rpartition("/")[2], command[1:]
    if name == "sleep" and arguments:
        await asyncio.sleep(float(arguments[0]))
    elif name == "echo":
        output = f"{' '.join(arguments)}\n".encode()
        return x.ExecResponse(stdout=output[: x.MOST_OUTPUT], truncated=len(output) > x.MOST_OUTPUT)
    elif name == "exit" and arguments:
        return x.ExecResponse(exit_code=int(arguments[0]))
    elif name not in ("true", "false"):
        raise ProviderError(ErrorKind.NOT_FOUND, f"the guest has no command {shown(command[0])}")
    return x.ExecResponse(exit_code=1 if name == "false" else 0)
