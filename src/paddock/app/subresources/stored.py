"""Machines and instances as they are stored: read from the server's memory, changed through its writer, with all that a write goes through.

Changes are JSON patches that test what their decision rests on. A test that fails means that somebody was faster: `PreconditionFailed`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure, patch
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import GROUP, VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.server.context import ServerParts
from paddock.server.objects.requests import Options, Proposal
from paddock.server.resources.kubevirtsubresources import INSTANCES, MACHINES
from paddock.server.resources.resource import ServedResource

MIGRATIONS = "virtualmachineinstancemigrations"
# Upstream names the singular in refusals, and clients print it.
SINGULAR = {MACHINES: "virtualmachine", INSTANCES: "virtualmachineinstance"}
# In whose name subresources change objects: upstream's component that serves them.
USER = "system:serviceaccount:kubevirt:kubevirt-apiserver"
_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kubevirt", "system:authenticated")
Operations = Iterable[Mapping[str, Any]]


class PreconditionFailed(Exception):
    """A precondition of a change no longer holds."""


def about(plural: str, name: str) -> failure.FailureTarget:
    """Return the target that refusals of a machine or an instance name."""
    return failure.FailureTarget(name=name, group=GROUP, kind=SINGULAR.get(plural, plural))


def conflict(plural: str, name: str, why: str) -> failure.Failure:
    """409, in upstream's words."""
    return failure.conflict(about(plural, name), why)


class StoredObjects:
    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts

    @property
    def parts(self) -> ServerParts:
        return self._parts

    def find(self, collection: str, namespace: str, name: str) -> Data | None:
        return self._parts.view.get(collection, namespace, name)

    def machine_data(self, namespace: str, name: str) -> Data:
        """A machine as it is stored; raises 404."""
        found = self.find(f"{MACHINES}.{GROUP}", namespace, name)
        if found is None:
            raise failure.not_found(about(MACHINES, name))
        return found

    def machine(self, namespace: str, name: str) -> VirtualMachine:
        """A machine; raises 404."""
        return from_data(self.machine_data(namespace, name), VirtualMachine)

    def instance_data(self, namespace: str, name: str) -> Data:
        """An instance as it is stored; raises 404."""
        found = self.find(f"{INSTANCES}.{GROUP}", namespace, name)
        if found is None:
            raise failure.not_found(about(INSTANCES, name))
        return found

    def instance(self, namespace: str, name: str) -> VirtualMachineInstance:
        """An instance; raises 404."""
        return from_data(self.instance_data(namespace, name), VirtualMachineInstance)

    def instance_if_any(self, namespace: str, name: str) -> VirtualMachineInstance | None:
        found = self.find(f"{INSTANCES}.{GROUP}", namespace, name)
        return None if found is None else from_data(found, VirtualMachineInstance)

    async def change(self, plural: str, place: tuple[str, str], operations: Operations, *, sub: str = "", dry_run: bool = False) -> None:
        """Patch an object, or its status; raises `PreconditionFailed`, and the `Failure` of a write."""
        wanted = [dict(each) for each in operations]

        def compute(old: Data) -> Proposal:
            try:
                return Proposal(patch.apply_json_patch(old, wanted))
            except patch.BadPatch as error:
                raise PreconditionFailed(str(error)) from None

        await self._parts.writer.replace(self.resource(plural), *place, compute, self._options(sub, dry_run=dry_run))

    async def edit(
        self, plural: str, place: tuple[str, str], change: Callable[[Data], Data], *, sub: str = "", dry_run: bool = False
    ) -> None:
        """Make the new form of an object from the old one, whichever is stored by then; `change` may refuse by a `Failure`."""
        options = self._options(sub, dry_run=dry_run)
        await self._parts.writer.replace(self.resource(plural), *place, lambda old: Proposal(change(old)), options)

    async def create(self, plural: str, namespace: str, data: Data, *, dry_run: bool = False) -> None:
        """Make an object of KubeVirt's group."""
        await self._parts.writer.create(self.resource(plural), namespace, data, self._options("", dry_run=dry_run))

    def resource(self, plural: str) -> ServedResource:
        """The resource of a plural of KubeVirt's group."""
        found = self._parts.registry.find(GROUP, "v1", plural)
        if found is None:
            raise failure.no_such_path()
        return found

    def _options(self, sub: str, *, dry_run: bool) -> Options:
        return msgspec.structs.replace(_OPTIONS, subresource=sub, dry_run=dry_run)


_OPTIONS = Options(user=USER, groups=_GROUPS, manager="virt-api")
