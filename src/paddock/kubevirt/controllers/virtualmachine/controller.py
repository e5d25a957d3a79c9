"""One look at a machine: read, decide, act, report.

    going?  --> end the instance, then let the machine go
    else    --> volumes that were asked for -> sizes -> disks -> step (start, stop, strategy) -> what a running one follows live -> status

The status is written last and once. What a machine is for a moment only, on its way to Running, is not written.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.base.jsonequality import identical
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound, QuotaExceeded
from paddock.kubernetes.client.options import json_patch, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, EventRecorder, Outcome, again, owners
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.statusdelays import StatusDelays
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.virtualmachine import targets
from paddock.kubevirt.controllers.virtualmachine.actions import ActionRefused, VirtualMachineActions, at_revision
from paddock.kubevirt.controllers.virtualmachine.observed import ObservedVirtualMachine, VirtualMachineCaches, claims_of, template_names
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirtConfiguration
from paddock.kubevirt.plan.instance.suspension import is_suspended
from paddock.kubevirt.plan.machine import instancetypes, lifecycle, liveupdate, printable, volumemigration, volumerequests
from paddock.kubevirt.plan.machine import status as machinestatus
from paddock.kubevirt.plan.machine.instances import FOREGROUND, GENERATION, VM_FINALIZER, start_revision_name
from paddock.kubevirt.plan.machine.instancetypes import KINDS, ResolvedInstancetype, kind_of
from paddock.kubevirt.plan.machine.lifecycle import LifecycleDecision
from paddock.kubevirt.plan.machine.runstrategy import InstanceState, RunStep, RunStrategy, life_of, strategy_of
from paddock.kubevirt.plan.machine.status import FailureNote, MachineFacts
from paddock.kubevirt.plan.storage import datavolumetemplates, sourcerefs
from paddock.kubevirt.plan.storage.sourcerefs import InlineSource, SourceBlocker

_INSTALLATION = Key("kubevirt", "kubevirt")
# Reconciles wait for commits; those that wait together share them.
_WORKERS = 32
# The source of events, as upstream names it.
COMPONENT = "virtualmachine-controller"


class VirtualMachinePass(msgspec.Struct):
    """The state of one pass so far."""

    observed: ObservedVirtualMachine
    decision: LifecycleDecision
    failure: Any = None
    # None: they were not looked at, and stay as the status has them
    sizes: dict[str, ResolvedInstancetype] | None = None
    trouble: FailureNote | None = None
    error: PaddockError | None = None
    restart: str = ""
    # the condition DataSourceResolved; as the status has it until the disks are known
    sources: Sequence[Condition] | None = None
    # a start waits for its disks, or for the back-off
    held: bool = False
    wait: float | None = None

    def refused(self, refused: ActionRefused) -> None:
        """An action failed; the status names it, and it is tried again."""
        self.trouble, self.error = FailureNote(refused.reason, str(refused.error)), refused.error


class VirtualMachineReconciler(KindReconciler):
    def __init__(self, client: Client, caches: VirtualMachineCaches, machinery: Machinery, recorder: EventRecorder) -> None:
        super().__init__(caches.machines, ObjectFinalizer(client, VM_FINALIZER))
        self._client = client
        self._caches = caches
        self._clock = machinery.clock
        self._chance = machinery.chance
        self._actions = VirtualMachineActions(client, recorder)
        self._statuses = StatusWriter(client, targets.MACHINES, caches.machines.expectations)
        self._resting = StatusDelays()
        # machines that a quota refused something
        self._refused: dict[Key, None] = {}
        # The copies of each machine that say their version.
        self._copies: dict[Key, dict[str, str]] = {}

    async def forget(self, key: Key) -> None:
        """Drop what is kept for a machine that is gone."""
        self._resting.end(key)
        self._copies.pop(key, None)
        self._refused.pop(key, None)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one machine a step on."""
        observed = self._caches.observe(seen)
        if await self._actions.hand_on_memory(observed) or await self._carry_requests(observed):
            # The watch brings us here again.
            return DONE
        return await self._go_on(observed)

    def refused(self, change: CacheChange) -> tuple[Key, ...]:
        """Return the machines that a change of a quota concerns."""
        return tuple(each for each in self._refused if each.namespace == change.seen.key.namespace)

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Stop the instance of a machine that goes, unless it was to be left alone; the disks follow their owner."""
        observed = self._caches.observe(seen)
        if observed.instance is not None and observed.is_ours and not finalizers.leaves_dependents(observed.meta):
            machine_pass = VirtualMachinePass(observed, LifecycleDecision(RunStep.KEEP))
            if observed.instance.metadata.deletionTimestamp is None:
                grace = observed.machine.metadata.deletionGracePeriodSeconds
                await self._try(machine_pass, self._actions.stop(observed, grace))
            elif await self._release(machine_pass) or observed.is_about_to_go:
                # The machine goes with it, and a status of that moment is for nobody.
                return DONE
            await self._report(machine_pass)
            if machine_pass.error is not None:
                raise machine_pass.error
            return DONE
        await finalizers.take_off(self._client, targets.MACHINES, observed.meta, VM_FINALIZER)
        return DONE

    async def _release(self, machine_pass: VirtualMachinePass) -> bool:
        """Let go of an instance whose end was taken note of; return whether something was written."""
        instance = machine_pass.observed.instance
        if instance is None or instance.metadata.deletionTimestamp is None:
            return False
        held = instance.metadata.finalizers or []
        if VM_FINALIZER not in held or not (life_of(instance).final or FOREGROUND not in held):
            return False
        rest = [each for each in held if each != VM_FINALIZER]
        metadata = {"finalizers": rest or None, "resourceVersion": instance.metadata.resourceVersion, "uid": instance.metadata.uid}
        try:
            await self._client.patch(targets.INSTANCE_DATA, machine_pass.observed.key, merge_patch({"metadata": metadata}))
        except NotFound:
            return False
        return True

    # --- the way on -------------------------------------------------------------------------------------------------------

    async def _carry_requests(self, observed: ObservedVirtualMachine) -> bool:
        """Volumes that were asked for go into the template; whether something was written, which brings us here again."""
        status = observed.data.get("status") or {}
        hardware = observed.data["spec"]["template"]["spec"]
        change: Data = {}
        made = hardware
        if requests := status.get("volumeRequests"):
            made, change["volumeRequests"] = volumerequests.plugged(made, requests).hardware, None
        if request := status.get("memoryDumpRequest"):
            outcome = volumerequests.dumped(made, request, observed.instance_data, self._now())
            made = outcome.hardware
            if outcome.remains != request:
                change["memoryDumpRequest"] = None
                if outcome.remains is not None:
                    await self._note_dump(observed.key.namespace, outcome.remains)
                    gone = {name: None for name in request if name not in outcome.remains}
                    change["memoryDumpRequest"] = {**outcome.remains, **gone}
        if identical(made, hardware) and not change:
            return False
        seen = observed.seen
        if not identical(made, hardware):
            operations = [at_revision(observed.meta.resourceVersion), {"op": "replace", "path": "/spec/template/spec", "value": made}]
            seen = CachedObject.of(await self._client.patch_raw(targets.MACHINES, observed.key, json_patch(operations)))
            self._caches.machines.expectations.wrote(seen)
        await self._statuses.change(seen, change)
        return True

    async def _note_dump(self, namespace: str, request: Data) -> None:
        """The claim names its dump before the machine's status does: whoever waits for the status finds it."""
        if notes := volumerequests.dump_notes(request):
            with contextlib.suppress(NotFound):
                await self._client.patch(
                    targets.CLAIMS, Key(namespace, request["claimName"]), merge_patch({"metadata": {"annotations": notes}})
                )

    async def _go_on(self, observed: ObservedVirtualMachine) -> Outcome:
        machine_pass = VirtualMachinePass(observed, lifecycle.decide(observed.machine, observed.instance if observed.is_ours else None))
        now, chance = self._clock.seconds(), self._chance.random()
        machine_pass.failure = lifecycle.start_failure(observed.machine, observed.instance if observed.is_ours else None, now, chance)
        if await self._renew_copies(machine_pass):
            # The watch brings us here again.
            return DONE
        if self._is_to_expand(observed):
            # What is written brings us here again.
            await self._try(machine_pass, self._actions.expand(observed, self._default_binding()))
            if machine_pass.error is None:
                return DONE
        else:
            await self._try(machine_pass, self._find_sizes(machine_pass))
        await self._try(machine_pass, self._make_disks(machine_pass))
        await self._note_last_generation(machine_pass)
        await self._step(machine_pass)
        await self._move_volumes(machine_pass)
        await self._follow(machine_pass)
        await self._report(machine_pass)
        # What the end of the instance means is in the status now.
        await self._release(machine_pass)
        self._refused.pop(observed.key, None)
        if isinstance(machine_pass.error, QuotaExceeded):
            self._refused[observed.key] = None
        if machine_pass.error is not None:
            raise machine_pass.error
        return DONE if machine_pass.wait is None else again(machine_pass.wait)

    async def _try(self, machine_pass: VirtualMachinePass, act: Any) -> Any:
        try:
            return await act
        except ActionRefused as refused:
            machine_pass.refused(refused)
            return None

    async def _renew_copies(self, machine_pass: VirtualMachinePass) -> bool:
        """Replace copies that do not say their version; return whether there was one. The status names the new one before the old goes."""
        observed, copies = machine_pass.observed, instancetypes.copies(machine_pass.observed.data)
        if copies == self._copies.get(observed.key, {}):
            return False
        renewed = await self._try(machine_pass, self._actions.renewed_copies(observed, copies))
        if renewed:
            named = {f"{member}Ref": {"controllerRevisionRef": {"name": name}} for member, name in renewed.items()}
            await self._statuses.change(observed.seen, named)
            for member in renewed:
                await self._actions.forget_revision(observed, copies[member])
        elif renewed is not None:
            self._copies[observed.key] = copies
        return bool(renewed)

    async def _find_sizes(self, machine_pass: VirtualMachinePass) -> None:
        """Sizes are needed for a start, and kept at the first look."""
        spec, status = machine_pass.observed.data["spec"], machine_pass.observed.data.get("status") or {}
        named = {member: _named(member, spec.get(member) or {}) for member in KINDS}
        known = {member: _named(member, status.get(f"{member}Ref") or {}) for member in KINDS}
        if machine_pass.decision.step is RunStep.START or named != known:
            machine_pass.sizes = await self._actions.sizes(machine_pass.observed)
            self._copies[machine_pass.observed.key] = {member: each.revision for member, each in machine_pass.sizes.items()}

    async def _make_disks(self, machine_pass: VirtualMachinePass) -> None:
        """DataVolumes are made with the machine; those that may wait are made when it is to run."""
        observed = machine_pass.observed
        if observed.is_restored:
            # The restore replaces them.
            return
        volumes = {each.metadata.name: each for each in datavolumetemplates.data_volumes(observed.machine)}
        due = set(volumes) if machine_pass.decision.step is RunStep.START else set()
        if life_of(observed.instance) is InstanceState.LIVE:
            # What a running machine has lost comes again when it starts the next time; what is new to it is made now.
            due = set(volumes) - set(claims_of((observed.instance.spec.volumes if observed.instance is not None else None) or ()))
        observed.disks = [msgspec.structs.replace(disk, expected=disk.expected or disk.name in due) for disk in observed.disks]
        found: list[InlineSource | SourceBlocker | None] = []
        for name in volumes:
            there = self._caches.disks.cache.get(Key(observed.key.namespace, name))
            if there is not None:
                await self._actions.adopt_disk(observed, there)
        for index, disk in enumerate(observed.disks):
            if disk.name not in volumes or disk.phase is not None or disk.claim is not None:
                continue
            wanted = volumes[disk.name]
            reference = wanted.spec.sourceRef
            source = sourcerefs.resolve(reference, observed.key.namespace, self._caches.source) if reference is not None else None
            found.append(source)
            if disk.expected and not isinstance(source, SourceBlocker):
                made = sourcerefs.inlined(wanted, source) if source is not None else sourcerefs.followed(wanted, self._caches.source)
                self._tell_of_absent_source(observed, made)
                await self._actions.make_disk(observed, made)
                observed.disks[index] = msgspec.structs.replace(disk, phase="")
        machine_pass.sources = sourcerefs.conditions(observed.machine, found)
        word = (observed.machine.status.printableStatus if observed.machine.status is not None else "") or ""
        for disk in observed.disks:
            if disk.phase == "Failed" and word != "DataVolumeError":
                self._actions.tell(observed, "Warning", "FailedDataVolumeImport", f"DataVolume {disk.name} failed to import disk image")

    def _tell_of_absent_source(self, observed: ObservedVirtualMachine, volume: DataVolume) -> None:
        """The DataVolume is made all the same, and waits for the claim that it copies."""
        source = volume.spec.source.pvc if volume.spec.source is not None else None
        if source is None or self._caches.claims.cache.get(Key(source.namespace or observed.key.namespace, source.name)) is not None:
            return
        name = volume.metadata.name
        why = f"Source PVC {source.name} not available: Target PVC {name} will remain unpopulated until source is created"
        # KubeVirt spells the reason so.
        self._actions.tell(observed, "Warning", "SourcePVCNotAvailabe", why)

    async def _step(self, machine_pass: VirtualMachinePass) -> None:
        observed, decision = machine_pass.observed, machine_pass.decision
        if decision.becomes is not None:
            await self._actions.change_strategy(observed, decision.becomes)
        elif decision.step is RunStep.STOP:
            await self._try(machine_pass, self._actions.stop(observed, None))
        elif decision.step is RunStep.START:
            held = lifecycle.held_seconds(machine_pass.failure, self._clock.seconds())
            templates = set(template_names(observed.machine))
            waits = any(disk.name in templates and not disk.is_filled for disk in observed.disks)
            machine_pass.wait = held or None
            recovers = volumemigration.needs_recovery(observed.machine, observed.instance)
            machine_pass.held = bool(held) or waits or recovers or machine_pass.error is not None or observed.is_restored
            if not machine_pass.held:
                made = await self._try(machine_pass, self._actions.start(observed, machine_pass.sizes or {}, paused=decision.paused))
                if made is None:
                    machine_pass.held = True
                else:
                    self._caches.instances.expectations.wrote(CachedObject.from_data(made))
                    observed.instance_data, observed.instance = made, from_data(made, targets.INSTANCES.cls)
                    machine_pass.decision = msgspec.structs.replace(
                        decision, requests=lifecycle.waiting(decision.requests, observed.instance)
                    )

    async def _note_last_generation(self, machine_pass: VirtualMachinePass) -> None:
        """Bring an instance that is about to end up to a generation with its own template.

        The status keeps the last generation that was observed. Without this, a halted machine would seem to wait for its own halt.
        """
        observed, data = machine_pass.observed, machine_pass.observed.instance_data
        if machine_pass.decision.step is not RunStep.STOP or data is None or not observed.is_behind:
            return
        before = await self._actions.started_from(observed, _revision(data))
        if before is not None and liveupdate.update(before, observed.data["spec"], data, live=False).is_complete:
            await self._bring_up_to_date(machine_pass, data, [])

    async def _move_volumes(self, machine_pass: VirtualMachinePass) -> None:
        """Have the volumes of a running instance move to the claims that the machine names now."""
        observed, instance, data = machine_pass.observed, machine_pass.observed.instance, machine_pass.observed.instance_data
        runs = instance is not None and instance.status is not None and instance.status.phase == "Running"
        if instance is None or data is None or not runs or not observed.is_ours or not self._is_live() or is_suspended(instance):
            return
        decision = volumemigration.decide(observed.machine, instance, self._caches.claims_in(observed.key.namespace), self._now())
        machine_pass.restart = decision.restart
        if decision.error:
            machine_pass.trouble = FailureNote("VolumesUpdateError", decision.error)
        if decision.patch and instance.metadata.deletionTimestamp is None:
            await self._change_instance(machine_pass, data, list(decision.patch))

    async def _follow(self, machine_pass: VirtualMachinePass) -> None:
        """Apply the part of a changed template that a running instance can take now."""
        observed, data = machine_pass.observed, machine_pass.observed.instance_data
        if data is None or not observed.is_behind:
            return
        before = await self._actions.started_from(observed, _revision(data))
        if before is None:
            machine_pass.restart = machine_pass.restart or liveupdate.OTHER
            return
        update = liveupdate.update(before, observed.data["spec"], data, live=self._is_live())
        if machine_pass.restart and not update.restart:
            update = msgspec.structs.replace(update, restart=machine_pass.restart)
        machine_pass.restart = machine_pass.restart or update.restart
        if is_suspended(observed.instance):
            # A guest on disk finds what it had. What changed meanwhile comes when it runs.
            return
        if update.is_complete:
            await self._bring_up_to_date(machine_pass, data, list(update.patch))
        elif update.patch:
            await self._change_instance(machine_pass, data, list(update.patch))

    async def _bring_up_to_date(self, machine_pass: VirtualMachinePass, instance: Data, operations: list[Data]) -> None:
        """Change the instance so that it is of the generation of now."""
        observed, revision = machine_pass.observed, _revision(instance)
        await self._actions.keep_start(observed)
        await self._change_instance(machine_pass, instance, _up_to_date(observed, instance, operations))
        if machine_pass.error is None and revision != start_revision_name(observed.data):
            await self._actions.forget_revision(observed, revision)

    async def _change_instance(self, machine_pass: VirtualMachinePass, instance: Data, operations: list[Data]) -> None:
        observed, revision = machine_pass.observed, at_revision(instance["metadata"]["resourceVersion"])
        written = await self._try(machine_pass, self._actions.update_instance(observed, [revision, *operations]))
        if written is not None:
            self._caches.instances.expectations.wrote(CachedObject.from_data(written))
            observed.instance_data, observed.instance = written, from_data(written, targets.INSTANCES.cls)

    def _configuration(self) -> KubeVirtConfiguration:
        seen = self._caches.installations.cache.get(_INSTALLATION)
        return (seen.read(targets.INSTALLATIONS).spec.configuration if seen is not None else None) or KubeVirtConfiguration()

    def _is_live(self) -> bool:
        return self._configuration().vmRolloutStrategy != "Stage"

    def _default_binding(self) -> str:
        network = self._configuration().network
        return (network.defaultNetworkInterface if network is not None else None) or "bridge"

    def _is_to_expand(self, observed: ObservedVirtualMachine) -> bool:
        """A machine that runs keeps its references until it has stopped: what it was made from does not change under it."""
        configured = self._configuration().instancetype
        policy = configured.referencePolicy if configured is not None else None
        return observed.instance is None and instancetypes.is_to_expand(policy, observed.data)

    # --- the report -------------------------------------------------------------------------------------------------------

    async def _report(self, machine_pass: VirtualMachinePass) -> None:
        """Write the status when it differs."""
        observed = machine_pass.observed
        wants = machine_pass.decision.step is RunStep.START and observed.instance is None
        wanted = machinestatus.status(
            observed.machine,
            observed.instance if observed.is_ours else None,
            MachineFacts(
                word=printable.printable(
                    printable.PrintableFacts(
                        observed.machine,
                        observed.instance if observed.is_ours else None,
                        disks=observed.disks,
                        wants_start=wants,
                        start_is_due=wants
                        and machine_pass.trouble is None
                        and lifecycle.held_seconds(machine_pass.failure, self._clock.seconds()) == 0,
                        failing=lifecycle.is_failing(observed.machine, machine_pass.failure, observed.instance),
                    )
                ),
                strategy=self._strategy(machine_pass),
                requests=machine_pass.decision.requests,
                failure=machine_pass.failure,
                trouble=machine_pass.trouble,
                restart=machine_pass.restart,
                sizes=machine_pass.sizes,
                sources=machine_pass.sources,
                absent=[disk.name for disk in observed.disks if disk.claim is None],
            ),
            self._now(),
        )
        before = observed.machine.status
        if before != wanted and self._rests(machine_pass, machinestatus.rest_seconds(before, wanted)):
            return
        self._resting.end(observed.key)
        if before != wanted:
            await self._statuses.write(observed.seen, wanted)

    def _rests(self, machine_pass: VirtualMachinePass, seconds: float) -> bool:
        """Return whether the status may still wait for the next one."""
        left = self._resting.left(machine_pass.observed.key, seconds) if seconds else 0.0
        if left:
            machine_pass.wait = left if machine_pass.wait is None else min(machine_pass.wait, left)
        return bool(left)

    def _strategy(self, machine_pass: VirtualMachinePass) -> str:
        """The strategy as processed: a start that is still held leaves the one before, else the machine would look as if it was stopped."""
        status, strategy = machine_pass.observed.machine.status, strategy_of(machine_pass.observed.machine.spec)
        before = (status.runStrategy if status is not None else None) or ""
        if strategy is RunStrategy.RERUN and machine_pass.decision.step is RunStep.START and machine_pass.observed.instance is None:
            return before
        return str(strategy)

    def _now(self) -> str:
        return ages.timestamp(self._clock.seconds())


def _named(member: str, matcher: Data) -> tuple[str, str] | None:
    """Return the kind and name in a matcher, or in the status about it."""
    return (kind_of(member, matcher.get("kind")) or "", matcher["name"]) if matcher.get("name") else None


def _revision(instance: Data) -> str:
    """Return the name of the copy that an instance was made from."""
    name: str = (instance.get("status") or {}).get("virtualMachineRevisionName", "")
    return name


def _up_to_date(observed: ObservedVirtualMachine, instance: Data, operations: list[Data]) -> list[Data]:
    """The operations by which an instance says that it is as the machine of now is."""
    path, name = "/metadata/annotations", start_revision_name(observed.data)
    annotations = next((each["value"] for each in operations if each["path"] == path), instance["metadata"].get("annotations"))
    wanted = {**(annotations or {}), GENERATION: str(observed.meta.generation or 1)}
    return [
        *(each for each in operations if each["path"] != path),
        {"op": "add", "path": path, "value": wanted},
        {"op": "add", "path": "/status/virtualMachineRevisionName", "value": name},
    ]


def wire(program: ControllerManager) -> Controller:
    """The controller, wired to a program."""
    caches = VirtualMachineCaches(program.informers)
    machines = VirtualMachineReconciler(program.client, caches, program.machinery, program.recorder.voice(COMPONENT))
    settings = ControllerSettings(workers=_WORKERS)
    reconcile = machines.reconcile
    controller = Controller(
        "virtualmachine", caches.machines, reconcile, machinery=program.machinery, recorder=program.recorder, settings=settings
    )
    controller.watch(caches.instances, owners(targets.MACHINES.group, targets.MACHINES.kind))
    controller.watch(caches.disks, owners(targets.MACHINES.group, targets.MACHINES.kind))
    controller.watch(caches.disks, caches.users_of_claim)
    controller.watch(caches.claims, caches.users_of_claim)
    controller.watch(caches.sources, caches.users_of_source)
    for kind, informer in caches.sizes.items():
        controller.watch(informer, caches.users_of_size(kind))
    controller.watch(caches.installations, lambda change: ())
    controller.watch(program.informers.of(targets.QUOTAS), machines.refused, gather=0.5)
    program.add(controller)
    return controller
