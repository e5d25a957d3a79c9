"""Rows of machines, as `paddock ls` lists them, and of their use."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.diagnosis.scene import at
from paddock.fleet.kinds import MACHINES
from paddock.fleet.machines import facts, usage
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.usage import MachineUsage, UsageSample
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.web.answers.rows import WebMachineRow, WebUsageRow
from paddock.web.live import parts, verbs
from paddock.web.live.objects import LiveObjects

_AMISS = ("bad", "waits")
MACHINE_TARGETS = tuple(each.target for each in MACHINES)
_USAGE_SECONDS = _CAUSE_SECONDS = 5.0
# An explanation is a dozen requests, so a page with many broken machines gets them a few at a time.
_MOST_CAUSES = 8


class _MachineCause(NamedTuple):
    """The cause of a state, and when it was found. `status` is the state that it explains."""

    status: str
    text: str
    found: float


class MachineRows:
    """The rows of all machines. A machine whose objects are the same as before keeps its row.

    The reason of a machine that is not as it should be is its cause, as `paddock why` gives it, and until that is found its own words.
    """

    kinds = MACHINE_TARGETS
    seconds = _CAUSE_SECONDS

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, tuple[MachineView, WebMachineRow]] = {}
        self._causes: dict[str, _MachineCause] = {}

    async def poll(self, client: Client, namespace: str) -> None:
        """Find causes anew, those that are the oldest first."""
        amiss = {place: machine for place, (machine, each) in self._rows.items() if each.state in _AMISS}
        self._causes = {place: cause for place, cause in self._causes.items() if place in amiss}
        reader = ServerReader(client, self._clock)
        for place in sorted(amiss, key=lambda each: self._causes[each].found if each in self._causes else 0.0)[:_MOST_CAUSES]:
            ref, status = amiss[place].ref, facts.of(amiss[place]).status
            try:
                cause = explain(await reader.gather(ref), ref).cause
            except PaddockError:
                # The server is away, or the user may not look: the machine's own words stay.
                return
            self._causes[place] = _MachineCause(status, cause.cause if cause is not None else "", self._clock.seconds())

    def rows(self, objects: LiveObjects) -> list[WebMachineRow]:
        fresh: dict[str, tuple[MachineView, WebMachineRow]] = {}
        for machine in objects.machines:
            place = parts.place(machine)
            known = self._rows.get(place)
            fresh[place] = machine, self._explained(known[1] if known is not None and _is_same(known[0], machine) else row(machine))
        self._rows = fresh
        return [each for _, each in fresh.values()]

    def _explained(self, web_machine_row: WebMachineRow) -> WebMachineRow:
        cause = self._causes.get(web_machine_row.id)
        if cause is None or cause.status != web_machine_row.status or cause.text in ("", web_machine_row.reason):
            return web_machine_row
        return replace(web_machine_row, reason=cause.text)


def _is_same(one: MachineView, other: MachineView) -> bool:
    # A watch brings every object anew.
    return one.data is other.data and one.vm is other.vm and one.vmi is other.vmi


def row(machine: MachineView) -> WebMachineRow:
    """Return the row of a machine."""
    found = facts.of(machine)
    return WebMachineRow(
        id=parts.place(machine),
        namespace=machine.namespace,
        name=machine.name,
        dialect=machine.dialect,
        status=found.status,
        state=found.state,
        reason=parts.message_of(machine.data) if found.state in _AMISS else "",
        ips=list(found.ips),
        cpus=found.cpus,
        memory=found.memory,
        created=found.created,
        since=found.since,
        node=found.node,
        image=found.image,
        disks=found.disks,
        guest=found.guest,
        protected=found.protected,
        labels={str(key): str(value) for key, value in (at(machine.data, "metadata", "labels") or {}).items()},
        verbs=list(verbs.of(machine)),
    )


class UsageRows:
    """The present use of running machines, read every five seconds while a page shows it."""

    kinds = MACHINE_TARGETS
    seconds = _USAGE_SECONDS

    def __init__(self) -> None:
        self._sample: UsageSample | None = None
        self._rates: Mapping[Key, MachineUsage] = {}

    async def poll(self, client: Client, namespace: str) -> None:
        """Read the figures. A server that has none leaves the rows empty."""
        try:
            sample = await usage.read(client, namespace)
        except PaddockError:
            self._sample, self._rates = None, {}
            return
        if self._sample is not None or sample.rated:
            self._rates = usage.rates(self._sample or sample, sample)
        self._sample = sample

    def rows(self, objects: LiveObjects) -> list[WebUsageRow]:
        """Return the rows of the machines that have figures."""
        return [_usage_row(objects.places[key], each) for key, each in self._rates.items() if key in objects.places]


def _usage_row(place: str, used: MachineUsage) -> WebUsageRow:
    return WebUsageRow(
        id=place,
        cpu=round(used.cpu, 3),
        memory=used.memory,
        guest=used.guest,
        read=round(used.read),
        write=round(used.write),
        received=round(used.received),
        sent=round(used.sent),
    )
