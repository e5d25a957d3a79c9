"""Creating and deleting machines.

A machine is made off, with its owner in a label, and everything that goes with it afterwards, owned by it. So a create that was
interrupted leaves nothing that a delete would not take along, and the next create finds the machine and goes on.
"""

import asyncio

import msgspec

from paddock.base import names, reasons
from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.objects import OwnerReference, owned_by
from paddock.kubevirt.kinds import missinggates
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import description, refusals
from paddock_drivers.kubevirt import booting, documents, marks, megahertz, observed, power, targets
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.cluster import R, TargetCluster, check_owner, id_of, is_owned, owner_reference
from paddock_drivers.kubevirt.documents import INCOMPLETE, MachineDocuments
from paddock_drivers.kubevirt.firewalls import FirewallControl
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId

# A machine that runs is cut off before it is deleted; what its disks hold goes with it.
_NO_GRACE = 0


class MachineLifecycle:
    def __init__(self, cluster: TargetCluster, control: power.PowerControl) -> None:
        self._cluster = cluster
        self._control = control
        self._firewalls = FirewallControl(cluster)

    # --- create -----------------------------------------------------------------------------------------------------------

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has."""
        given = description.of_create(request)
        digest = description.digest(request)
        machine = await self._existing(request, given, digest)
        made: MachineDocuments | None = None
        if machine is None:
            made = await self.documents(given)
            gates = await self._cluster.gates()
            if gates is not None:
                missinggates.check(made.machine, gates)
            machine = await self._cluster.ensure(targets.MACHINES, documents.claimed(made.machine, request.owner, digest))
            _check_owner(machine, request, digest)
        if _is_incomplete(machine):
            await self._complete(machine, made or await self.documents(given))
        return m.CreateResponse(id=str(id_of(machine)), task=m.TaskRef(id=str(TaskId(TaskGoal.CREATED, id_of(machine)))))

    async def documents(self, description: MachineDescription) -> MachineDocuments:
        """Return the objects of a machine that is described."""
        for each in description.disks:
            if each.path and (not names.is_subdomain(each.path) or await self._cluster.find(targets.CLAIMS, each.path) is None):
                what = f"the disk {each.path[:64]!r} does not exist in namespace {self._cluster.namespace}"
                raise refusals.not_found(what, "import it first", reason=reasons.VOLUME_MISSING)
        return documents.build(
            description, await self.boot_source(description), await megahertz.informed(self._cluster, description.hardware)
        )

    async def _existing(self, request: m.CreateRequest, description: MachineDescription, digest: str) -> VirtualMachine | None:
        """The machine that the owner has; raises Conflict when its name belongs to another one."""
        if request.owner is not None and request.owner.uid:
            found = await self._cluster.every(targets.MACHINES, f"{marks.OWNER_UID}={request.owner.uid}")
            if found:
                return min(found, key=lambda each: (each.metadata.creationTimestamp or "", each.metadata.name))
        named = await self._cluster.find(targets.MACHINES, description.name)
        if named is not None:
            _check_owner(named, request, digest)
        return named

    async def boot_source(self, description: MachineDescription) -> BootDisk:
        """Return the source of the first disk; raises NotFound when the target does not have it."""
        namespace, name = booting.named(description.image)
        if not name:
            if not description.image.url:
                raise refusals.invalid(f"machine {description.name} has nothing to boot from", fix="give it an image or an imported disk")
            return booting.fetched(description.image)
        if description.image.template_name:
            return await self._template(namespace or self._cluster.namespace, name)
        claim, volume = await asyncio.gather(self._cluster.find(targets.CLAIMS, name), self._cluster.find(targets.DATA_VOLUMES, name))
        if claim is None:
            raise refusals.not_found(
                f"the disk {name} does not exist in namespace {self._cluster.namespace}", "import it first", reason=reasons.VOLUME_MISSING
            )
        if booting.is_image(claim, volume):
            return booting.copied(self._cluster.namespace, claim, volume)
        return BootDisk(kind=BootKind.CLAIM, name=name, size=booting.size_of(claim))

    async def _template(self, namespace: str, name: str) -> BootDisk:
        """A template is a DataSource or a claim; machines get a copy."""
        source = await self._find_in(targets.DATA_SOURCES, namespace, name)
        of = source.spec.source.pvc if source is not None else None
        place = (of.namespace or namespace, of.name) if of is not None else (namespace, name)
        claim = await self._find_in(targets.CLAIMS, *place)
        volume = await self._find_in(targets.DATA_VOLUMES, *place) if claim is not None else None
        if source is not None:
            size = booting.guest_size(claim, volume) if claim is not None else 0
            return BootDisk(kind=BootKind.COPY_SOURCE, name=name, namespace=namespace, size=size)
        if claim is None:
            raise refusals.not_found(
                f"neither a DataSource nor a claim {name} exists in namespace {namespace}",
                "prepare the image",
                reason=reasons.TEMPLATE_MISSING,
            )
        return booting.copied(namespace, claim, volume)

    async def _find_in(self, target: Target[R], namespace: str, name: str) -> R | None:
        other = msgspec.structs.replace(self._cluster.settings, namespace=namespace)
        return await TargetCluster(self._cluster.client, other).find(target, name)

    async def _complete(self, machine: VirtualMachine, made: MachineDocuments) -> None:
        """Make what goes with a machine, and say that it is complete. Each step may have been done before."""
        owners = owned_by(machine) or []
        for secret in made.secrets:
            await self._belonging(targets.SECRETS, secret, machine, owners)
        for definition in made.definitions:
            await self._belonging(targets.DEFINITIONS, definition, machine, owners)
        await self._firewalls.keep(machine, made.firewall)
        for name in _claims(machine):
            await self._take_over(machine, name)

        async def finish() -> None:
            found = await self._cluster.machine(str(id_of(machine)))
            if _is_incomplete(found):
                await self._cluster.merge(targets.MACHINES, found, {"metadata": {"annotations": {INCOMPLETE: None}}})

        await self._cluster.retried(finish)

    async def _belonging(self, target: Target[R], desired: R, machine: VirtualMachine, owners: list[OwnerReference]) -> None:
        metadata = msgspec.structs.replace(desired.metadata, namespace=self._cluster.namespace, ownerReferences=owners)
        found = await self._cluster.ensure(target, msgspec.structs.replace(desired, metadata=metadata))
        if not is_owned(found, machine):
            what = f"{desired.kind} {desired.metadata.name} exists and does not belong to machine {machine.metadata.name}"
            raise refusals.conflict(what, fix="delete or rename it")

    async def _take_over(self, machine: VirtualMachine, name: str) -> None:
        """A disk that the driver imported goes with the machine that boots from it; anybody else's claim stays theirs."""
        volume = await self._cluster.find(targets.DATA_VOLUMES, name)
        if volume is None or (volume.metadata.labels or {}).get(marks.PURPOSE) != booting.DISK:
            return
        owners = volume.metadata.ownerReferences or []
        if any(each.kind == machine.kind and each.uid != machine.metadata.uid for each in owners):
            raise refusals.conflict(f"the disk {name} belongs to machine {owners[0].name}", fix="import it once more")
        if not is_owned(volume, machine):
            await self._cluster.merge(targets.DATA_VOLUMES, volume, {"metadata": {"ownerReferences": [owner_reference(machine)]}})

    # --- delete -----------------------------------------------------------------------------------------------------------

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with all that it owns. One that is gone is deleted."""
        identity = ObjectId.parse(request.id)
        machine = await self._cluster.find_id(targets.MACHINES, identity)
        if machine is None or identity is None:
            return m.TaskResponse()
        check_owner(machine, request.owner)
        instance = await self._cluster.instance(machine)
        if observed.is_live(instance) and machine.metadata.deletionTimestamp is None:
            await self._control.stop(machine, instance, _NO_GRACE)
        await self._cluster.delete(targets.MACHINES, identity, foreground=True)
        return m.TaskResponse(task=m.TaskRef(id=str(TaskId(TaskGoal.DELETED, identity))))


def _is_incomplete(machine: VirtualMachine) -> bool:
    return INCOMPLETE in (machine.metadata.annotations or {})


def _claims(machine: VirtualMachine) -> list[str]:
    """The claims that a machine uses as they are."""
    volumes = machine.spec.template.spec.volumes or ()
    return [each.persistentVolumeClaim.claimName for each in volumes if each.persistentVolumeClaim is not None]


def _check_owner(machine: VirtualMachine, request: m.CreateRequest, digest: str) -> None:
    """Raise Conflict when a machine of the name is not the one that the request asks for."""
    labels, notes = machine.metadata.labels or {}, machine.metadata.annotations or {}
    mine = labels.get(marks.OWNER_UID)
    if request.owner is not None and request.owner.uid:
        if mine == request.owner.uid:
            return
    elif mine is None and notes.get(marks.REQUEST) == digest:
        return
    whose = f"belongs to {notes[marks.OWNER]}" if marks.OWNER in notes else "is not this owner's"
    what = f"machine {machine.metadata.name} cannot be created in namespace {machine.metadata.namespace}"
    raise refusals.conflict(what, why=f"one of this name exists and {whose}", fix="rename the VirtualMachine, or adopt that machine")
