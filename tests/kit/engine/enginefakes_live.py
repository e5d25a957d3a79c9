"""The part of a machine in memory whose guest goes to another host, or comes from one, with the contract of the real one."""

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar, Literal

from msgspec.structs import replace

from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.livefiles import HandedGuest, ReceivedGuest
from paddock.engine.machine.livelinks import ReceiverAddress
from paddock.engine.machine.livesource import GuestReceiver, SendRequest
from paddock.engine.machine.livetarget import LeavingGuest, ReceiveRequest
from paddock.engine.machine.observation import EndReason, Observation
from paddock.engine.machine.requests import Verb


class FakeDecisions:
    """The ends of migrations, which outlive their machines."""

    def __init__(self) -> None:
        self.noted: dict[tuple[str, str], Literal["", "sent", "taken", "dropped"]] = {}

    def note(self, side: str, migration: str, state: Literal["sent", "taken", "dropped"]) -> None:
        self.noted[side, migration] = state

    def state(self, side: str, migration: str) -> Literal["", "sent", "taken", "dropped"]:
        return self.noted.get((side, migration), "")


class FakeLive:
    """`immigrant`: what a target lacks. `rooted`: why a guest cannot leave. `goes`: memory and disks have arrived when it is set."""

    id: str
    config: MachineConfig
    observed: Observation
    # the machines that wait, by the migration
    EXPECTED: ClassVar[dict[str, "FakeLive"]] = {}

    def __init__(self) -> None:
        self.rooted, self.lacking = "", ""
        self.goes = asyncio.Event()
        self.goes.set()
        self.sent: list[SendRequest] = []
        self.received: list[ReceiveRequest] = []
        self.arrival: ReceivedGuest | None = None
        self.handed_over: HandedGuest | None = None
        self._whole = asyncio.Event()
        self._leaving: asyncio.Future[None] | None = None

    @abstractmethod
    def _admit(self, verb: Verb) -> bool: ...

    @abstractmethod
    def observe(self, *, milestone: str = "", **changes: Any) -> None: ...

    @abstractmethod
    def end(self, reason: EndReason, text: str = "") -> None: ...

    @abstractmethod
    def proceed(self, paused: Any) -> None: ...

    def _saved(self) -> SavedMachine:
        return SavedMachine(0.0, 0, self.config, self.config, {}, [], "tcg", "", paused=False, disks={})

    async def describe_leaving(self) -> LeavingGuest:
        self._admit(Verb.SEND)
        if self.rooted:
            raise RequestRefused(f"cannot migrate machine {self.id}", reason="NotMigratable", why=self.rooted)
        return LeavingGuest(self._saved(), "7.2.0", {})

    async def send(self, send_request: SendRequest, target: GuestReceiver) -> bool:
        if not self._admit(Verb.SEND):
            return await self.settle(target)
        self.sent.append(send_request)
        self._leaving = asyncio.ensure_future(self._leave(send_request.migration, target))
        try:
            await self._leaving
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RequestRefused(f"cannot migrate machine {self.id}", reason="Cancelled", why="the migration was called off") from None
        finally:
            self._leaving.cancel()
            self._leaving = None
        self.handed_over = HandedGuest(send_request.migration)
        self.observe(phase="stopping", handed="offered")
        return await self.settle(target)

    async def _leave(self, migration: str, target: GuestReceiver) -> None:
        await self.goes.wait()
        FakeLive.EXPECTED[migration]._whole.set()
        await target.arrived(migration)

    def keep_guest(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()

    async def settle(self, target: GuestReceiver) -> bool:
        handed = self.handed_over
        if handed is None:
            return False
        if not handed.decided:
            try:
                taken = await target.take(handed.migration)
            except OSError as error:
                raise Unanswered("cannot ask the target", why=str(error)) from error
            if not taken:
                self.handed_over = None
                self.observe(phase="running", handed="")
                return False
            self.handed_over = replace(handed, decided=True)
            self.observe(handed="decided")
            self.end("saved")
            self.observe(handed="decided")
        return True

    async def receive(self, receive_request: ReceiveRequest) -> ReceiverAddress:
        self._admit(Verb.ARRIVE)
        if self.lacking:
            raise RequestRefused(f"cannot receive the guest of machine {self.id}", reason="NotReceivable", why=self.lacking)
        self.received.append(receive_request)
        self.arrival = ReceivedGuest(receive_request.migration, self._saved())
        self._whole.clear()
        FakeLive.EXPECTED[receive_request.migration] = self
        self.observe(phase="starting", run=self.observed.run + 1, milestone="started")
        return ReceiverAddress(receive_request.address, 1, 2, "word")

    async def arrived(self, migration: str) -> None:
        while not self._whole.is_set():
            if self.arrival is None or self.arrival.state != "waiting" or not self.observed.live:
                raise StartFailed(f"cannot receive the guest of machine {self.id}", why="its QEMU ended")
            await asyncio.sleep(0.1)

    async def take(self, migration: str) -> bool:
        if self.arrival is None or self.arrival.migration != migration:
            raise Unanswered(f"cannot tell what became of migration {migration}", why="nothing is known of it")
        if self.arrival.state == "waiting" and self.observed.live and self._whole.is_set():
            self.arrival = replace(self.arrival, state="taken")
            self.proceed("")
        elif self.arrival.state == "waiting":
            await self.drop_arrival(migration)
        return self.arrival.state == "taken"

    async def drop_arrival(self, migration: str) -> bool:
        if self.arrival is None or self.arrival.migration != migration:
            raise Unanswered(f"cannot tell what became of migration {migration}", why="nothing is known of it")
        if self.arrival.state == "waiting":
            self.arrival = replace(self.arrival, state="dropped")
            self.end("never-started", "dropped")
        return self.arrival.state == "dropped"

    def keep_migrations(self, decisions: FakeDecisions) -> None:
        """As `forget` does."""
        if self.arrival is not None:
            decisions.note("target", self.arrival.migration, "taken" if self.arrival.state == "taken" else "dropped")
        if self.handed_over is not None and self.handed_over.decided:
            decisions.note("source", self.handed_over.migration, "sent")
