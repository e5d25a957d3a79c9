"""The actions of the machine controller on the API: every write, with its event. Each may be repeated."""

import asyncio
from collections.abc import Mapping

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions, json_patch, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.runtime.adoption import Adopter, adopt
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubevirt.controllers.virtualmachine import targets
from paddock.kubevirt.controllers.virtualmachine.observed import ObservedVirtualMachine
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instancetype import InstancetypeSpec
from paddock.kubevirt.plan.machine import instances, instancetypes
from paddock.kubevirt.plan.machine.instancetypes import ResolvedInstancetype
from paddock.kubevirt.plan.machine.runstrategy import RunStrategy
from paddock.kubevirt.plan.pool import preservation
from paddock.kubevirt.rules import sizing
from paddock.kubevirt.rules.place import MachinePlace

_ADOPTION = "cdi.kubevirt.io/allowClaimAdoption"
NORMAL, WARNING = "Normal", "Warning"
_UNKNOWN = {instancetypes.INSTANCETYPE: "FailedFindInstancetype", instancetypes.PREFERENCE: "FailedFindPreference"}


class ActionRefused(Exception):
    """Something could not be done: the reason of the condition Failure, and why."""

    def __init__(self, reason: str, error: PaddockError) -> None:
        super().__init__(str(error))
        self.reason = reason
        self.error = error


class VirtualMachineActions:
    """The writes of the controller."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    def tell(self, observed: ObservedVirtualMachine, kind: str, reason: str, note: str) -> None:
        """An event of the machine."""
        self._recorder.tell(observed.about, kind, reason, note)

    # --- starting and stopping --------------------------------------------------------------------------------------------

    async def start(self, observed: ObservedVirtualMachine, sizes: dict[str, ResolvedInstancetype], *, paused: bool) -> Data:
        """Make the instance; raises `ActionRefused`."""
        await self._forget_start(observed)
        wanted = instances.instance_of(observed.data, list(sizes.values()), paused=paused)
        # Together, so that they are one commit of the store. Should the copy alone be missing, every later change asks for a restart.
        kept, made = await asyncio.gather(self.keep_start(observed), self._make_instance(observed, wanted), return_exceptions=True)
        if isinstance(made, BaseException):
            raise made
        if kept is not None:
            raise kept
        return made

    async def hand_on_memory(self, observed: ObservedVirtualMachine) -> bool:
        """Have a machine forget the memory that its instance goes on from, so that no later one does; return whether it did."""
        if not observed.is_ours or observed.instance is None or instances.CONTINUES not in (observed.machine.metadata.annotations or {}):
            return False
        metadata = {"annotations": {instances.CONTINUES: None}, "uid": observed.meta.uid}
        await self._client.patch(targets.MACHINES, observed.key, merge_patch({"metadata": metadata}))
        return True

    async def _make_instance(self, observed: ObservedVirtualMachine, wanted: Data) -> Data:
        made: Data
        try:
            made = await self._client.create(targets.INSTANCE_DATA, wanted)
        except AlreadyExists:
            made = await self._existing(observed)
        except Conflict:
            raise
        except PaddockError as error:
            raise self._refused(observed, "FailedCreate", f"Error creating virtual machine instance: {error}", error) from error
        else:
            note = f"Started the virtual machine by creating the new virtual machine instance {observed.key.name}"
            self.tell(observed, NORMAL, "SuccessfulCreate", note)
        return made

    async def _existing(self, observed: ObservedVirtualMachine) -> Data:
        """The instance that has the name already: ours after a crash between two writes, or a user's own."""
        found = await self._client.get(targets.INSTANCE_DATA, observed.key)
        owners = found["metadata"].get("ownerReferences") or ()
        if any(each.get("uid") == observed.meta.uid for each in owners):
            return found
        error = Terminal(
            f"cannot start {observed.key}",
            why=f"a VirtualMachineInstance {observed.key.name} exists that does not belong to it",
            fix="delete the instance, or rename the machine",
        )
        raise self._refused(observed, "FailedCreate", str(error), error)

    async def stop(self, observed: ObservedVirtualMachine, grace_seconds: int | None) -> None:
        """Delete the instance; raises `ActionRefused`."""
        instance = observed.instance
        if instance is None:
            return
        uid = instance.metadata.uid or ""
        try:
            await self._client.delete(targets.INSTANCE_DATA, observed.key, DeletionOptions(uid=uid, grace_seconds=grace_seconds))
        except NotFound:
            return
        except Conflict:
            raise
        except PaddockError as error:
            raise self._refused(observed, "FailedDelete", f"Error deleting virtual machine instance {uid}: {error}", error) from error
        self.tell(observed, NORMAL, "SuccessfulDelete", f"Stopped the virtual machine by deleting the virtual machine instance {uid}")
        # The status says at once what the watch will tell in a moment.
        marked = msgspec.structs.replace(instance.metadata, deletionTimestamp=instance.metadata.deletionTimestamp or "now")
        observed.instance = msgspec.structs.replace(instance, metadata=marked)

    async def change_strategy(self, observed: ObservedVirtualMachine, strategy: RunStrategy) -> None:
        """Write another strategy into the spec, in the form it has there."""
        spec = observed.data["spec"]
        member, value = ("running", strategy is RunStrategy.ALWAYS) if spec.get("running") is not None else ("runStrategy", str(strategy))
        change = {"op": "replace", "path": f"/spec/{member}", "value": value}
        await self._client.patch(targets.MACHINE_DATA, observed.key, json_patch([at_revision(observed.meta.resourceVersion), change]))

    async def update_instance(self, observed: ObservedVirtualMachine, operations: list[Data]) -> Data | None:
        """Change the instance while it runs, and return it, or None if it is gone; raises `ActionRefused`."""
        try:
            return await self._client.patch(targets.INSTANCE_DATA, observed.key, json_patch(operations))
        except NotFound:
            return None
        except Conflict:
            raise
        except PaddockError as error:
            raise ActionRefused("FailedUpdateError", error) from error

    # --- what is kept -----------------------------------------------------------------------------------------------------

    async def sizes(self, observed: ObservedVirtualMachine) -> dict[str, ResolvedInstancetype]:
        """The instancetype and the preference of a machine, each from the copy that is made at the first look; raises `ActionRefused`."""
        return {each.member: await self._frozen(observed, each) for each in await self._resolved(observed)}

    async def expand(self, observed: ObservedVirtualMachine, binding: str) -> None:
        """Write what the instancetype and the preference say into the machine, in place of their names; raises `ActionRefused`."""
        found = await self._resolved(observed)
        spec = instancetypes.expanded_machine(observed.data, found, binding)["spec"]
        operations = [at_revision(observed.meta.resourceVersion), {"op": "replace", "path": "/spec", "value": spec}]
        await self._client.patch(targets.MACHINE_DATA, observed.key, json_patch(operations))
        for each in found:
            if each.revision:
                await self.forget_revision(observed, each.revision)

    async def _resolved(self, observed: ObservedVirtualMachine) -> list[ResolvedInstancetype]:
        found: list[ResolvedInstancetype] = []
        for member in instancetypes.KINDS:
            if observed.data["spec"].get(member) is None:
                continue
            known = await self._fetch(observed, member)
            try:
                named = instancetypes.find(member, observed.data["spec"], observed.key.namespace, _in(known), observed.data.get("status"))
            except instancetypes.MissingInstancetype as missing:
                error = Terminal(missing.why, fix=f"make the {member}, or name another in spec.{member}")
                raise self._refused(observed, _UNKNOWN[member], str(error), error) from None
            if named is not None:
                self._refuse_conflicts(observed, named)
                found.append(named)
        return found

    def _refuse_conflicts(self, observed: ObservedVirtualMachine, instancetype: ResolvedInstancetype) -> None:
        """Refuse an instancetype that was made after a machine that sets the same fields. Admission has held a copy against them."""
        if instancetype.member != instancetypes.INSTANCETYPE or instancetype.revision:
            return
        place = MachinePlace(spec=observed.machine.spec, path=("spec",))
        fields = [each.field for each in sizing.conflicts(place, from_data(instancetype.spec, InstancetypeSpec))]
        if fields:
            error = Terminal(f"VMI conflicts with instancetype spec in fields: [{', '.join(fields)}]", fix="leave them out of the machine")
            raise self._refused(observed, "FailedCreate", str(error), error)

    async def _fetch(self, observed: ObservedVirtualMachine, member: str) -> dict[tuple[str, str, str], Data]:
        """Everything that `instancetype.find` may ask for, as far as it exists."""
        asked: list[tuple[str, str, str]] = []

        def note(resource: str, namespace: str, name: str) -> Data | None:
            asked.append((resource, namespace, name))
            return None

        known: dict[tuple[str, str, str], Data] = {}
        try:
            instancetypes.find(member, observed.data["spec"], observed.key.namespace, note, observed.data.get("status"))
        except instancetypes.MissingInstancetype:
            for resource, namespace, name in asked:
                try:
                    known[resource, namespace, name] = await self._client.get(targets.sizing(resource), Key(namespace, name))
                except NotFound:
                    continue
                break
        return known

    async def _frozen(self, observed: ObservedVirtualMachine, resolved_instancetype: ResolvedInstancetype) -> ResolvedInstancetype:
        if resolved_instancetype.revision:
            return resolved_instancetype
        revision = instancetypes.revision_of(resolved_instancetype, observed.data, instances.owner_of(observed.data))
        await self._keep(revision)
        name = revision["metadata"]["name"]
        kept = await self._client.get(targets.REVISIONS, Key(observed.key.namespace, name))
        if (kept.get("data") or {}).get("spec") != revision["data"]["spec"]:
            error = Terminal(f"found existing ControllerRevision with unexpected data: {name}", fix="delete it, and it is made anew")
            raise self._refused(observed, "FailedCreate", str(error), error)
        return msgspec.structs.replace(resolved_instancetype, revision=name)

    async def renewed_copies(self, observed: ObservedVirtualMachine, copies: Mapping[str, str]) -> dict[str, str]:
        """Make a copy in place of each that does not say its version; return the names of those made, by the member of the machine."""
        renewed: dict[str, str] = {}
        for member, name in copies.items():
            copy = await self._client.find(targets.REVISIONS, Key(observed.key.namespace, name))
            old = instancetypes.unversioned(member, copy) if copy is not None else None
            if old is not None and (made := (await self._frozen(observed, old)).revision) != name:
                renewed[member] = made
        return renewed

    async def started_from(self, observed: ObservedVirtualMachine, revision: str) -> Data | None:
        """The spec that the instance was started from."""
        if not revision:
            return None
        kept = await self._client.find(targets.REVISIONS, Key(observed.key.namespace, revision))
        if kept is None:
            return None
        spec: Data | None = (kept.get("data") or {}).get("spec")
        return spec

    async def keep_start(self, observed: ObservedVirtualMachine) -> None:
        """Keep what the machine is now: its instance is made from it, or brought up to it."""
        await self._keep(instances.start_revision(observed.data))

    async def forget_revision(self, observed: ObservedVirtualMachine, name: str) -> None:
        """A copy is of no use any more."""
        try:
            await self._client.delete(targets.REVISIONS, Key(observed.key.namespace, name))
        except NotFound:
            return

    async def _keep(self, revision: Data) -> None:
        try:
            await self._client.create(targets.REVISIONS, revision)
        except AlreadyExists:
            # What is kept of a start does not change, so it is the same.
            return

    async def _forget_start(self, observed: ObservedVirtualMachine) -> None:
        """The copy of the start before is of no use any more."""
        status = observed.machine.status
        before = status.observedGeneration if status is not None else None
        if before is None or before == observed.meta.generation:
            return
        old = {**observed.data, "metadata": {**observed.data["metadata"], "generation": before}}
        await self.forget_revision(observed, instances.start_revision_name(old))

    # --- disks ------------------------------------------------------------------------------------------------------------

    async def make_disk(self, observed: ObservedVirtualMachine, volume: DataVolume) -> None:
        """Make the DataVolume of a template; raises `ActionRefused`."""
        name, wanted = volume.metadata.name, to_data(volume)
        metadata = wanted["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), instances.CREATED_BY: observed.meta.uid}
        metadata["annotations"] = {_ADOPTION: "true", **(metadata.get("annotations") or {})}
        try:
            await self._client.create(targets.DISK_DATA, wanted)
        except AlreadyExists:
            return
        except Conflict:
            raise
        except PaddockError as error:
            self.tell(observed, WARNING, "FailedDataVolumeCreate", f"Error creating DataVolume {name}: {error}")
            text = PaddockError(f"Error encountered while creating DataVolumes: {error}")
            raise ActionRefused("FailedCreate", error if isinstance(error, Terminal) else text) from error
        self.tell(observed, NORMAL, "SuccessfulDataVolumeCreate", f"Created DataVolume {name}")

    async def adopt_disk(self, observed: ObservedVirtualMachine, disk: CachedObject) -> None:
        """Give the DataVolume of a template that nobody owns to the machine: it goes with it from now on."""
        owner = Adopter(targets.MACHINE_DATA, observed.key, observed.meta.uid, preservation.may_adopt)
        await adopt(self._client, owner, targets.DISK_DATA, disk)

    def _refused(self, observed: ObservedVirtualMachine, reason: str, note: str, error: PaddockError) -> ActionRefused:
        self.tell(observed, WARNING, reason, note)
        return ActionRefused(reason, error)


def at_revision(revision: str) -> Data:
    """The operation by which a JSON patch fails with a conflict when the object is not the one that the controller saw."""
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": revision}


def _in(known: dict[tuple[str, str, str], Data]) -> instancetypes.Find:
    return lambda resource, namespace, name: known.get((resource, namespace, name))
