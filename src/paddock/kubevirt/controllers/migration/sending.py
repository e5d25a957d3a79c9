"""The source of a migration to another server.

    Synchronizing   the target is asked, again and again, until it accepts or refuses
    fence           the machine cannot be started any more: stored before anything is sent
    Running         the engine sends; after the offer it settles with the target until that has answered
    the end         the fence says where the guest is, or goes

What was under way is in the engine's files (`handed.json`); a controller that begins anew goes on from there.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine.directory import UnreadableState
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.livesource import SendRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubevirt.controllers.migration.controller import POLICIES
from paddock.kubevirt.controllers.migration.liveparts import LiveParts, LiveSubject
from paddock.kubevirt.controllers.migration.peers import LineCredentials, PeerReply, PeerRequest, RemoteTarget
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import fencing, migrations, runstrategy
from paddock.kubevirt.plan.machine.runstrategy import life_of
from paddock.kubevirt.plan.migration import decentralized
from paddock.kubevirt.plan.migration.decentralized import SendLimits

_AGAIN_SECONDS, _SETTLE_SECONDS, _LOOK_SECONDS = 5.0, 2.0, 1.0
_DROP_SECONDS = 15.0
# Refusals of the engine that pass by themselves.
_PASSING = ("Busy", "StillStarting", "Paused")
_NOT_SENT = "the server ended before the guest was handed over; it runs on here"
_NOT_TAKEN = "the target did not take the guest; it runs on here"


class Departure:
    """What this process does for one migration."""

    def __init__(self, remote: RemoteTarget, credentials: LineCredentials) -> None:
        self.remote, self.credentials = remote, credentials
        # None: the target has not accepted yet
        self.reply: PeerReply | None = None
        self.task: asyncio.Task[Any] | None = None
        self.sends = False

    @property
    def works(self) -> bool:
        return self.task is not None and not self.task.done()

    def start(self, work: Coroutine[Any, Any, Any], name: str, end: Callable[[], None], *, sends: bool) -> None:
        """Do this, and call `end` when it is done. `sends`: the guest may leave."""
        self.sends = self.sends or sends
        self.task = asyncio.create_task(work, name=name)
        self.task.add_done_callback(lambda _: end())

    async def ask(self, request: PeerRequest) -> None:
        """Have the target accept the guest. Raises as `RemoteTarget.receive`."""
        self.reply = await self.remote.receive(request)

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.remote.close()


class LiveSender:
    """Sends the guests of this server to others. `request` asks for a reconcile of a migration."""

    def __init__(self, parts: LiveParts, addresses: list[str], request: Callable[[Key], None]) -> None:
        self._parts, self._addresses = parts, addresses
        self._request = request
        self._departures: dict[str, Departure] = {}

    def forget(self, uid: str) -> None:
        """Drop what is known of a migration that is gone or over."""
        if (departure := self._departures.pop(uid, None)) is not None:
            departure.close()

    def close(self) -> None:
        """The server ends. What is under way is found again by the next one."""
        for uid in tuple(self._departures):
            self.forget(uid)

    async def work(self, live: LiveSubject) -> Outcome:
        """Bring a migration a step on."""
        departure = self._departures.get(live.uid)
        step = decentralized.departure_step(live.phase, self._handed(live), works=departure is not None and departure.works)
        if step == "begin":
            return await self._begin(live)
        if step == "ask":
            return await self._ask(live)
        if step == "settle":
            return self._settle(live)
        if step == "succeed":
            return await self._succeed(live)
        if step == "follow":
            return await self._follow(live)
        return await self._failed(live)

    def _handed(self, live: LiveSubject) -> str:
        """Return what the files say: "", "offered" or "decided"."""
        if live.machine is None:
            return "decided" if self._parts.machines.migrations.state("source", live.id) == "sent" else ""
        try:
            handed = live.machine.handed_over
        except UnreadableState:
            # Nobody can tell; it stays where it is until somebody knows.
            return "offered"
        if handed is None or handed.migration != live.id:
            return ""
        return "decided" if handed.decided else "offered"

    # --- before anything is sent ------------------------------------------------------------------------------------------

    async def _begin(self, live: LiveSubject) -> Outcome:
        decided = self._parts.machines.migrations.state("source", live.id)
        why = decentralized.obstacle(live.migration, live.instance, self._parts.others(live), decided)
        if not why and (machine := await self._parts.machine_above(live)) is not None:
            why = self._foreign_fence(live, machine)
        if why or live.seen.meta.deleting:
            return await self._fail(live, why or "the migration was deleted", tells=False)
        if await self._parts.put_on_finalizer(live.seen):
            return DONE
        # As KubeVirt does on both sides; only that of a target is for the other one.
        addresses = {"synchronizationAddresses": self._addresses}
        await self._parts.write(
            live, decentralized.entered(live.migration.status, decentralized.SYNCHRONIZING, self._parts.now(), **addresses)
        )
        return DONE

    def _foreign_fence(self, live: LiveSubject, machine: VirtualMachine) -> str:
        found = fencing.reason(machine.metadata.annotations)
        return f"the machine is fenced: {found}" if found and found != decentralized.fence(live.id) else ""

    async def _ask(self, live: LiveSubject) -> Outcome:
        """Have the target accept the guest; what it says is in the outcome of the task."""
        departure, machine = self._departures.get(live.uid), live.machine
        if live.seen.meta.deleting:
            return await self._fail(live, "the migration was deleted")
        if live.instance is None or life_of(live.instance).final:
            return await self._fail(live, "the instance has ended")
        if departure is not None and departure.task is not None:
            return await self._answered(live, departure, departure.task)
        if machine is None or machine.observed.phase != "running":
            await self._parts.block(live, "the guest does not run")
            return again(_AGAIN_SECONDS)
        end = live.migration.spec.sendTo
        place = decentralized.address_of(end.connectURL) if end is not None else None
        if place is None:
            return await self._fail(live, "connectURL is no address", tells=False)
        remote = RemoteTarget(place, self._parts.dial, live.id)
        departure = self._departures[live.uid] = Departure(remote, self._parts.credentials("source"))
        self._start(live, departure, self._asked(live, machine, departure), sends=False)
        return DONE

    async def _asked(self, live: LiveSubject, machine: QemuMachine, departure: Departure) -> None:
        guest = await machine.describe_leaving()
        authority = departure.credentials.authority.decode()
        request = PeerRequest("receive", live.id, guest, authority, self._parts.facts(live))
        await departure.ask(request)

    async def _answered(self, live: LiveSubject, departure: Departure, task: asyncio.Task[Any]) -> Outcome:
        error = _error_of(task)
        if error is None and departure.reply is not None and live.machine is not None:
            await self._send(live, live.machine, departure, departure.reply)
            return DONE
        passes = isinstance(error, Unanswered) or (isinstance(error, RequestRefused) and error.reason in _PASSING)
        if not passes:
            return await self._fail(live, str(error or "the guest does not run"))
        self.forget(live.uid)
        await self._parts.block(live, str(error))
        return again(_AGAIN_SECONDS)

    # --- the way ----------------------------------------------------------------------------------------------------------

    async def _send(self, live: LiveSubject, machine: QemuMachine, departure: Departure, reply: PeerReply) -> None:
        """Fence the machine, say that it begins, and send. In this order, each is stored before the next."""
        above = await self._parts.machine_above(live)
        if above is not None:
            await self._parts.change_machine(above, {"metadata": {"annotations": {fencing.FENCE: decentralized.fence(live.id)}}})
        limits = self._limits(live, machine)
        state = decentralized.begun(live.uid, self._parts.facts(live), reply.target, self._parts.now(), limits)
        await self._parts.write_instance(live, state)
        status = decentralized.entered(live.migration.status, decentralized.RUNNING, self._parts.now(), migrationState=to_data(state))
        await self._parts.write(live, status)
        if departure.sends or reply.address is None:
            return
        credentials = departure.credentials.trusting(reply.authority.encode())
        send_request = SendRequest(live.id, reply.address, credentials, limits.bandwidth, limits.seconds, limits.auto_converge)
        self._start(live, departure, machine.send(send_request, departure.remote), sends=True)

    def _limits(self, live: LiveSubject, machine: QemuMachine) -> SendLimits:
        caches = self._parts.caches
        namespace = caches.namespaces.cache.get(Key("", live.seen.key.namespace))
        labels = (live.there.meta.labels if live.there is not None else None) or {}
        policies = [each.read(POLICIES) for each in caches.policies.cache]
        policy = migrations.chosen(policies, (namespace.meta.labels if namespace else None) or {}, labels)
        size = machine.config.memory.size + sum(disk.size for disk in machine.observed.disks.values())
        return decentralized.limits(policy, size / (1 << 30))

    async def _follow(self, live: LiveSubject) -> Outcome:
        """Something is being done. A deletion calls the guest back, up to the offer."""
        if not live.seen.meta.deleting:
            return DONE
        departure = self._departures[live.uid]
        if not departure.sends:
            return await self._fail(live, "the migration was deleted")
        if live.machine is not None:
            live.machine.keep_guest()
        return again(_LOOK_SECONDS)

    def _settle(self, live: LiveSubject) -> Outcome:
        """Ask the target what became of the guest, which stands still."""
        end, machine = live.migration.spec.sendTo, live.machine
        place = decentralized.address_of(end.connectURL) if end is not None else None
        if machine is None or place is None:
            return again(_SETTLE_SECONDS)
        departure = self._departures.get(live.uid)
        if departure is None:
            remote = RemoteTarget(place, self._parts.dial, live.id)
            departure = self._departures[live.uid] = Departure(remote, self._parts.credentials("source"))
        is_first = departure.task is None

        async def settle() -> bool:
            if not is_first:
                await asyncio.sleep(_SETTLE_SECONDS)
            return await machine.settle(departure.remote)

        self._start(live, departure, settle(), sends=True)
        return DONE

    def _start(self, live: LiveSubject, departure: Departure, work: Coroutine[Any, Any, Any], *, sends: bool) -> None:
        departure.start(work, f"migration {live.seen.key}", lambda: self._request(live.seen.key), sends=sends)

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _failed(self, live: LiveSubject) -> Outcome:
        """Nothing is under way any more, and the guest was not handed over."""
        departure = self._departures.get(live.uid)
        task = departure.task if departure is not None else None
        if task is None:
            return await self._fail(live, _NOT_SENT)
        error = _error_of(task)
        if departure is not None and not departure.sends and error is None:
            # The answer of the target came, and the status says that already.
            return await self._answered(live, departure, task)
        if live.seen.meta.deleting:
            return await self._fail(live, "the migration was deleted")
        return await self._fail(live, str(error) if error is not None else _NOT_TAKEN)

    async def _fail(self, live: LiveSubject, why: str, *, tells: bool = True) -> Outcome:
        if tells:
            await self._tell_target(live, why)
        above = await self._parts.machine_above(live)
        if above is not None and fencing.reason(above.metadata.annotations) == decentralized.fence(live.id):
            await self._parts.change_machine(above, {"metadata": {"annotations": {fencing.FENCE: None}}})
        await self._parts.finish(live, why)
        self.forget(live.uid)
        return DONE

    async def _tell_target(self, live: LiveSubject, why: str) -> None:
        """Have the target drop the guest. One that cannot be reached drops it by itself."""
        end = live.migration.spec.sendTo
        place = decentralized.address_of(end.connectURL) if end is not None else None
        if place is not None:
            with contextlib.suppress(PaddockError, TimeoutError):
                async with asyncio.timeout(_DROP_SECONDS):
                    await RemoteTarget(place, self._parts.dial, live.id).drop(why)

    async def _succeed(self, live: LiveSubject) -> Outcome:
        """The guest is elsewhere, and is not started here again."""
        above, end = await self._parts.machine_above(live), live.migration.spec.sendTo
        if above is not None and fencing.reason(above.metadata.annotations) == decentralized.fence(live.id):
            fence = decentralized.fence_after(live.id, end.connectURL if end is not None else "")
            change: dict[str, Any] = {"metadata": {"annotations": {fencing.FENCE: fence}}}
            if runstrategy.strategy_of(above.spec) in runstrategy.STARTING:
                change["spec"] = {"running": False} if above.spec.running is not None else {"runStrategy": "Halted"}
            await self._parts.change_machine(above, change)
        await self._parts.finish(live)
        self.forget(live.uid)
        return DONE


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    if task.cancelled():
        return Unanswered("the migration was interrupted")
    return task.exception()
