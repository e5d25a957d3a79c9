"""While the host cannot run machines, every VirtualMachineInstance that has not ended says why in its condition Ready.

The controller of instances, which makes that condition anew, does not run meanwhile; what is written here goes with its first look.
"""

from collections.abc import Callable, Sequence

import msgspec

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.kinds import instance
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.phases import FINAL

INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
REASON = "HostNotReady"


class OutageReconciler(KindReconciler):
    """The controller of instances that nobody looks after."""

    def __init__(self, client: Client, informer: Informer, machinery: Machinery, why: Callable[[], str]) -> None:
        super().__init__(informer)
        self._statuses = StatusWriter(client, INSTANCES, informer.expectations)
        self._clock = machinery.clock
        self._why = why

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Say the same of an instance that is being deleted: its end waits for the host."""
        return await self.work(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """Say why one instance is not looked after."""
        status = seen.read(INSTANCES).status
        if status is not None and status.phase in FINAL:
            return DONE
        conditions = said((status.conditions if status is not None else None) or (), self._why(), ages.timestamp(self._clock.seconds()))
        if conditions is not None:
            await self._statuses.change(seen, {"conditions": msgspec.to_builtins(conditions)})
        return DONE


def said(before: Sequence[Condition], why: str, now: str) -> list[Condition] | None:
    """The conditions with Ready saying why; None: it does so already."""
    message = f"the host cannot run machines: {why}"
    old = next((each for each in before if each.type == "Ready"), None)
    if old is not None and (old.status, old.reason, old.message) == ("False", REASON, message):
        return None
    since = old.lastTransitionTime if old is not None and old.status == "False" else now
    ready = Condition(type="Ready", status="False", reason=REASON, message=message, lastTransitionTime=since)
    return [ready, *(each for each in before if each.type != "Ready")]


def wire(program: ControllerManager, why: Callable[[], str]) -> Controller:
    """The controller, wired to a program. Offer it the keys to reconcile when `why` changes."""
    informer = program.informers.of(INSTANCES)
    outage = OutageReconciler(program.client, informer, program.machinery, why)
    controller = Controller("outage", informer, outage.reconcile, machinery=program.machinery, recorder=program.recorder)
    program.add(controller)
    return controller
