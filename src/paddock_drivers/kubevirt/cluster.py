"""The target: the objects of one namespace, read and written through the client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson

from paddock.base.jsondata import Data
from paddock.contract.messages import ObjectIdentity
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, Forbidden, NotFound, Unavailable
from paddock.kubernetes.client.options import DeletionOptions, Selection, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.objects import Resource
from paddock.kubevirt.kinds.gates import ClusterGates, of_installations
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks, targets
from paddock_drivers.kubevirt.identifiers import ObjectId
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

R = TypeVar("R", bound=Resource)
# How often a decision is taken anew because somebody else wrote the object meanwhile.
_ATTEMPTS = 5


class TargetCluster:
    """The driver's namespace at a Kubernetes API with KubeVirt and CDI."""

    def __init__(self, client: Client, settings: KubeVirtDriverSettings) -> None:
        self.client = client
        self.settings = settings
        self.namespace = settings.namespace

    async def find(self, target: Target[R], name: str) -> R | None:
        """An object by its name, or None."""
        try:
            return await self.client.get(target, Key(self.namespace if target.namespaced else "", name))
        except NotFound as error:
            if not error.details.get("name"):
                raise
            return None

    async def find_id(self, target: Target[R], id: ObjectId | None) -> R | None:
        """The object of an id, or None; another object of its name is not it."""
        found = await self.find(target, id.name) if id is not None else None
        return found if found is not None and id is not None and found.metadata.uid == id.uid else None

    async def machine(self, text: str, owner: ObjectIdentity | None = None) -> VirtualMachine:
        """The machine of an id; raises NotFound when there is none, and Conflict when it is not this owner's."""
        found = await self.find_id(targets.MACHINES, ObjectId.parse(text))
        if found is None:
            raise refusals.not_found(f"machine {text} does not exist in namespace {self.namespace}")
        check_owner(found, owner)
        return found

    async def instance(self, machine: VirtualMachine) -> VirtualMachineInstance | None:
        """The run of a machine, or None."""
        return await self.find(targets.INSTANCES, machine.metadata.name)

    async def every(self, target: Target[R], labels: str = "") -> list[R]:
        """All objects of a kind in the namespace."""
        return (await self.client.list(target, Selection(namespace=self.namespace if target.namespaced else "", labels=labels))).items

    async def ensure(self, target: Target[R], desired: R) -> R:
        """Make an object, or return the one of its name that is there; the caller judges whose it is."""
        try:
            return await self.client.create(target, desired, self.namespace)
        except AlreadyExists:
            found = await self.find(target, desired.metadata.name)
            if found is None:
                raise
            return found

    async def gates(self) -> ClusterGates | None:
        """Return the feature gates of the target's KubeVirt, as far as it shows them."""
        try:
            found = await self.client.list_raw(targets.INSTALLATIONS)
        except (NotFound, Forbidden):
            return None
        return of_installations(orjson.loads(each) for each in found.items)

    async def merge(self, target: Target[R], resource: Resource, document: Data) -> None:
        """Change an object, as long as nobody else has written it since it was read."""
        metadata = {**document.get("metadata", {}), "resourceVersion": resource.metadata.resourceVersion}
        await self.client.patch_raw(target, self.key(resource), merge_patch({**document, "metadata": metadata}))

    async def delete(self, target: Target[R], id: ObjectId, *, foreground: bool = False) -> None:
        """Delete the object of an id; one that is gone is deleted."""
        options = DeletionOptions(uid=id.uid, propagation="Foreground" if foreground else "")
        try:
            await self.client.delete(target, Key(self.namespace, id.name), options)
        except NotFound:
            return
        except Conflict:
            # Another object has the name by now, or somebody wrote it in the same moment.
            if await self.find_id(target, id) is not None:
                raise

    async def act(self, kind: Target[Any], name: str, verb: str, body: Data | None = None, *, seconds: float | None = None) -> Data:
        """Ask something of a machine or of its run; the answer, if it is an object."""
        path = f"{targets.ACTIONS}/namespaces/{self.namespace}/{kind.plural}/{name}/{verb}"
        answer = await self.client.request("PUT", path, body=orjson.dumps(body or {}), seconds=seconds)
        found = orjson.loads(answer) if answer.strip() else None
        return found if isinstance(found, dict) else {}

    async def raw(self, target: Target[R], name: str) -> Data:
        """An object with every member that the server sends."""
        found: Data = orjson.loads(await self.client.get_raw(target, Key(self.namespace, name)))
        return found

    async def resources(self, group_version: str) -> set[str]:
        """The plurals that a version of a group serves."""
        try:
            found = orjson.loads(await self.client.request("GET", f"/apis/{group_version}"))
        except Unavailable as error:
            # Another program of the target serves it, such as virt-api; the answer does not say which.
            group, _, version = group_version.rpartition("/")
            raise refusals.unserved(group_version, f"{version}.{group}", str(error)) from error
        return {str(each["name"]) for each in found.get("resources") or ()}

    async def retried(self, step: Callable[[], Awaitable[None]]) -> None:
        """Carry out a step that reads, decides and writes; again if somebody else wrote meanwhile."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await step()
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return
            await asyncio.sleep(self.settings.poll_seconds / 10)

    def key(self, resource: Resource) -> Key:
        """The place of an object."""
        return Key(resource.metadata.namespace or "", resource.metadata.name)


def check_owner(machine: VirtualMachine, owner: ObjectIdentity | None) -> None:
    """Raise Conflict for a machine that belongs to another owner. One that belongs to nobody may be anybody's."""
    mine = (machine.metadata.labels or {}).get(marks.OWNER_UID)
    if owner is not None and owner.uid and mine is not None and mine != owner.uid:
        whose = (machine.metadata.annotations or {}).get(marks.OWNER, mine)
        raise refusals.conflict(f"machine {machine.metadata.name} is not changed", why=f"it belongs to {whose}")


def id_of(resource: Resource) -> ObjectId:
    """The id of an object."""
    return ObjectId(resource.metadata.name, resource.metadata.uid or "")


def is_owned(resource: Resource, owner: Resource) -> bool:
    """Return whether an object goes with its owner."""
    return any(each.uid == owner.metadata.uid for each in resource.metadata.ownerReferences or ())


def owner_reference(owner: Resource, *, controls: bool = False) -> Data:
    """The reference to an owner, as a patch writes it."""
    return {
        "apiVersion": owner.apiVersion,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": controls,
        "blockOwnerDeletion": True,
    }
