"""The object `kubevirt/kubevirt` is Deployed, and the common instancetypes and preferences are made once, as is the
policy that protects machines from deletion.

What users delete of them stays deleted: an annotation of the KubeVirt object says which edition was made. If the object itself is
deleted it is made again, with defaults: there is nothing that could be uninstalled.
"""

import asyncio
from collections.abc import Iterable, Sequence

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes import releases
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.controllers.installation import protection
from paddock.kubevirt.kinds import instancetype, kubevirt_cr, preference
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirt

INSTALLATIONS: Target[KubeVirt] = declared(kubevirt_cr.KINDS[0], KubeVirt)
INSTALLATION_DATA: Target[Data] = declared(kubevirt_cr.KINDS[0], dict)
NAMESPACES = kind_target("", "Namespace")
KEY = Key("kubevirt", "kubevirt")
EDITION = ownnames.COMMON_INSTANCETYPES.name
_ARCHITECTURE = "amd64"
_AT_A_TIME = 16


class KubeVirtReconciler(KindReconciler):
    """The controller of the KubeVirt object."""

    def __init__(self, client: Client, informer: Informer, machinery: Machinery, version: str, addresses: Sequence[str]) -> None:
        super().__init__(informer)
        # where other servers hand running guests over
        self._addresses = list(addresses) or None
        self._client = client
        self._statuses = StatusWriter(client, INSTALLATIONS, informer.expectations)
        self._clock = machinery.clock
        self._version = version

    async def missing(self, key: Key) -> Outcome:
        if key == KEY:
            await self._make()
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Report that the one installation is deployed, and make what comes with it once."""
        if seen.key != KEY:
            return DONE
        found = seen.read(INSTALLATIONS)
        # Lazily: hundreds of lines of data that are needed once in the life of a directory.
        from paddock.kubevirt.plan.machine import commoninstancetypes, commonpreferences  # noqa: PLC0415

        if (found.metadata.annotations or {}).get(EDITION) != commoninstancetypes.VERSION:
            await self._make_all(commoninstancetypes.instancetypes(), declared(instancetype.KINDS[1], dict))
            await self._make_all(commonpreferences.preferences(), declared(preference.KINDS[1], dict))
            mark = {"metadata": {"annotations": {EDITION: commoninstancetypes.VERSION}}}
            seen = CachedObject.of(await self._client.patch_raw(INSTALLATIONS, KEY, merge_patch(mark)))
        if (found.metadata.annotations or {}).get(protection.EDITION) != protection.VERSION:
            for target, wanted in protection.objects():
                await self._make_all([wanted], target)
            mark = {"metadata": {"annotations": {protection.EDITION: protection.VERSION}}}
            seen = CachedObject.of(await self._client.patch_raw(INSTALLATIONS, KEY, merge_patch(mark)))
        await self._statuses.change(seen, self._status(found))
        return DONE

    def _status(self, kube_virt: KubeVirt) -> Data:
        """Return the missing parts of the status; empty when it is complete."""
        generation = kube_virt.metadata.generation or 1
        has = kube_virt.status
        version, addresses = self._version, self._addresses
        seen = (has.phase, has.observedGeneration, has.observedKubeVirtVersion, has.synchronizationAddresses) if has is not None else None
        if seen == ("Deployed", generation, version, addresses):
            return {}
        now = ages.timestamp(self._clock.seconds())
        known = {each.type: each.lastTransitionTime for each in (has.conditions if has is not None else None) or ()}
        said = (
            ("Available", "True", "AllComponentsReady", "All components are ready."),
            ("Progressing", "False", "AllComponentsReady", "All components are ready."),
            ("Degraded", "False", "AllComponentsReady", "All components are ready."),
            ("Created", "True", "AllResourcesCreated", "All resources were created."),
        )
        conditions = [
            {"type": aspect, "status": status, "reason": reason, "message": text, "lastTransitionTime": known.get(aspect) or now}
            for aspect, status, reason, text in said
        ]
        return {
            "phase": "Deployed",
            "conditions": conditions,
            "observedGeneration": generation,
            "operatorVersion": version,
            "observedKubeVirtVersion": version,
            "targetKubeVirtVersion": version,
            "defaultArchitecture": _ARCHITECTURE,
            "synchronizationAddresses": addresses,
        }

    async def _make(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KEY.namespace}}
        body = {
            "apiVersion": INSTALLATION_DATA.api_version,
            "kind": INSTALLATION_DATA.kind,
            "metadata": {"name": KEY.name, "namespace": KEY.namespace},
            "spec": {},
        }
        for target, wanted in ((NAMESPACES, namespace), (INSTALLATION_DATA, body)):
            try:
                await self._client.create(target, wanted)
            except AlreadyExists:
                continue

    async def _make_all(self, objects: Iterable[Data], target: Target[Data]) -> None:
        """Several at a time: the store commits together what comes together."""
        turn = asyncio.Semaphore(_AT_A_TIME)

        async def make(wanted: Data) -> None:
            async with turn:
                try:
                    await self._client.create(target, wanted)
                except AlreadyExists:
                    return

        await asyncio.gather(*(make(each) for each in objects))


def wire(program: ControllerManager, version: str = releases.name_of(0), addresses: Sequence[str] = ()) -> Controller:
    """The controller, wired to a program; it begins by itself. Clients compare the version of KubeVirt that it tells."""
    informer = program.informers.of(INSTALLATIONS)
    made = KubeVirtReconciler(program.client, informer, program.machinery, version, addresses)
    controller = Controller("installation", informer, made.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.offer(KEY)
    program.add(controller)
    return controller
