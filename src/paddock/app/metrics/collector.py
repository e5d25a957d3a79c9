"""Reads everything for the page: the caches of the controllers, the machines, the host.

What an object says is written into lines once for each revision of it, and dropped with it: a page of five hundred machines is made
mostly of lines that are there already.
"""

import asyncio
import contextlib
import platform
from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeVar

from paddock.app.metrics.life import Panics, Phases
from paddock.app.metrics.queries import PendingQueries
from paddock.app.metrics.series import disks, families, host, instances, machines, migrations, usage
from paddock.app.metrics.series.page import MetricsPage, Sample, labels, sample
from paddock.app.subresources.sessions import Sessions
from paddock.base.errors import PaddockError
from paddock.base.metrics import Counter
from paddock.engine.engine import Engine
from paddock.engine.machine.observation import Statistics
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.quotas import launcher
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.migration.controller import MIGRATIONS
from paddock.kubevirt.controllers.snapshots.targets import SNAPSHOTS
from paddock.kubevirt.controllers.storage import targets
from paddock.kubevirt.controllers.virtualmachineinstance.controller import RECONCILES
from paddock.kubevirt.kinds import virtualmachine
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
_SERIES = {
    "console": "kubevirt_console_active_connections",
    "vnc": "kubevirt_vnc_active_connections",
    "usbredir": "kubevirt_usbredir_active_connections",
    "portforward": "kubevirt_portforward_active_tunnels",
}
# name here -> what it is counted as, and that one's label with the name that it has here
RENAMED = {
    "rest_client_requests_total": ("paddock_client_requests_total", None),
    "kubevirt_rest_client_requests_total": ("paddock_client_requests_total", None),
    "rest_client_request_duration_seconds": ("paddock_client_request_duration_seconds", ("method", "verb")),
    # the name before, which published dashboards still have
    "rest_client_request_latency_seconds": ("paddock_client_request_duration_seconds", ("method", "verb")),
    **{
        prefix + name: known
        for prefix in ("", "kubevirt_")
        for name, known in {
            "workqueue_adds_total": ("paddock_workqueue_adds_total", ("queue", "name")),
            "workqueue_retries_total": ("paddock_workqueue_retries_total", ("queue", "name")),
            "workqueue_depth": ("paddock_workqueue_depth", ("queue", "name")),
            "workqueue_unfinished_work_seconds": ("paddock_workqueue_unfinished_seconds", ("queue", "name")),
            "workqueue_longest_running_processor_seconds": ("paddock_workqueue_longest_seconds", ("queue", "name")),
            "workqueue_queue_duration_seconds": ("paddock_workqueue_wait_seconds", ("queue", "name")),
            "workqueue_work_duration_seconds": ("paddock_reconcile_duration_seconds", ("controller", "name")),
        }.items()
    },
}
# New objects or volumes, before others get their turn: a few milliseconds.
_AT_A_TIME = 20
T = TypeVar("T")
V = TypeVar("V")


class CachedSeries(Generic[T, V]):
    """A value for each object of a kind, made again only when the object changes."""

    def __init__(self, informers: Informers, target: Target[T], make: Callable[[T], V]) -> None:
        self.informer: Informer = informers.of(target)
        self._target = target
        self._make = make
        self._values: dict[Key, tuple[CachedObject, V]] = {}

    async def all(self) -> list[tuple[CachedObject, V]]:
        """Of all that are there now. Others get their turn while much is new."""
        before, made, found = self._values, 0, {}
        for seen in self.informer.cache:
            known = before.get(seen.key)
            if known is None or known[0] is not seen:
                known = (seen, self._make(seen.read(self._target)))
                made += 1
                if made % _AT_A_TIME == 0:
                    await asyncio.sleep(0)
            found[seen.key] = known
        self._values = found
        return list(found.values())

    async def values(self) -> list[V]:
        """The same, without what it was made of."""
        return [value for _, value in await self.all()]

    def get(self, key: Key) -> V | None:
        """Of one, as of the last look at all."""
        found = self._values.get(key)
        return found[1] if found is not None else None


class MetricsCollector:
    def __init__(
        self, program: ControllerManager, engine: Engine, sessions: Sessions, fills_disks: Callable[[], bool], release: str
    ) -> None:
        self._program = program
        self._engine = engine
        self._sessions = sessions
        self._fills_disks = fills_disks
        self._release = release
        of = program.informers
        self._machines = CachedSeries(of, MACHINES, machines.metrics_of)
        self._instances = CachedSeries(of, targets.INSTANCES, instances.metrics_of)
        self._claims = CachedSeries(of, targets.CLAIMS, machines.size)
        self._transfers = CachedSeries(of, targets.DATA_VOLUMES, lambda each: each)
        self._crons = CachedSeries(of, targets.IMPORT_CRONS, lambda each: each)
        self._profiles = CachedSeries(of, targets.PROFILES, lambda each: each)
        self._classes = CachedSeries(of, targets.CLASSES, lambda each: each)
        self._snapshots = CachedSeries(of, SNAPSHOTS, lambda each: tuple(disks.snapshots((each,))))
        self._migrations = CachedSeries(of, MIGRATIONS, migrations.metrics_of)
        self._asking = PendingQueries()
        self._panics = Panics()
        self._syncs: Counter = program.machinery.metrics.counter(*RECONCILES)
        self._instances.informer.cache.index("uid", lambda seen: (seen.meta.uid,))
        self._instances.informer.handle(Phases(program.machinery.metrics).hear)
        engine.machines.listen(self._changed)

    async def text(self, names: Collection[str] = ()) -> str:
        """All series of now. What takes reading files is left out when only other families are asked for."""
        used = await self._asking.ask(self._engine.machines)
        page = MetricsPage(families.ALL)
        page.add(host.samples(self._host()))
        known = await self._machines.values()
        await self._claims.all()
        for machine in known:
            page.add(machine.samples)
            page.add(machines.disks(machine, self._size))
        page.add(machines.numbers(machine.namespace for machine in known))
        there = await self._instances.all()
        self._forget({Key(each.namespace, each.name) for each in known}, [seen for seen, _ in there])
        for seen, metrics in there:
            page.add(metrics.samples)
            page.add(self._measured(seen, metrics.at, used.get(seen.meta.uid)))
        page.add(instances.counts(machine_metrics.kind for _, machine_metrics in there))
        page.add(disks.transfers(await self._transfers.values()))
        page.add(disks.crons(await self._crons.values()))
        page.add(disks.profiles(await self._profiles.values(), await self._classes.values()))
        for samples in await self._snapshots.values():
            page.add(samples)
        moving = await self._migrations.values()
        page.add(migrations.counts(moving))
        for migration in moving:
            page.add(migration.samples)
        if not names or disks.SPACE in names:
            page.add(disks.space(await self._space()))
        return page.text() + "".join(f"{line}\n" for line in self._renamed()) + self._program.machinery.metrics.text()

    async def close(self) -> None:
        """Ask no machine any more."""
        await self._asking.close()

    def _host(self) -> host.HostUsage:
        program = self._program
        return host.HostUsage(
            interpreter=f"python{platform.python_version()}",
            version=self._release,
            has_kvm=bool(self._engine.facts.kvm.works),
            ready=not program.informers.unready(),
            leading=program.leading,
            fills_disks=self._fills_disks(),
            outdated=sum(machine.outdated for machine in self._engine.machines),
            sessions={_SERIES[kind]: count for kind, count in self._sessions.open.items()},
        )

    def _measured(self, seen: CachedObject, at: str, used: Statistics | None) -> Iterator[Sample]:
        """Yield the usage of a machine and the reports of its guest."""
        place = labels(namespace=seen.key.namespace, name=seen.key.name)
        yield sample("kubevirt_vmi_guest_os_panic_total", place, self._panics.count(seen.key))
        last = self._sessions.last(seen.meta.uid)
        if last is not None:
            yield sample("kubevirt_vmi_last_api_connection_timestamp_seconds", place, last)
        machine = self._engine.machines.get(seen.meta.uid)
        if used is None or machine is None:
            return
        yield from usage.samples(at, used)
        yield from usage.container(seen.key.namespace, launcher.name_of(seen.key.name, seen.meta.uid), used)
        yield usage.affinity(at, machine.config, machine.observed.sockets, len(self._engine.facts.cpus))
        guest = self._asking.guest(machine.id)
        if guest is not None:
            yield from usage.filesystems(at, guest.filesystems)
            yield from usage.loads(at, guest.loads)

    async def _space(self) -> list[tuple[Key, int]]:
        """Return the space that each claim takes. Others get their turn meanwhile."""
        found = []
        for number, seen in enumerate(list(self._claims.informer.cache)):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
            # A volume that cannot be read is reported where somebody uses it.
            with contextlib.suppress(PaddockError):
                if (volume := self._engine.volumes.get(seen.meta.uid)) is not None:
                    found.append((seen.key, volume.allocated))
        return found

    def _size(self, namespace: str, name: str) -> tuple[int, str] | None:
        return self._claims.get(Key(namespace, name))

    def _forget(self, known: set[Key], there: list[CachedObject]) -> None:
        """Counts go with what they are about."""
        keys = known | {seen.key for seen in there}
        uids = {seen.meta.uid for seen in there}
        self._syncs.keep(lambda place: Key(*place) in keys)
        self._panics.keep(keys, uids)
        self._sessions.keep(uids)

    def _changed(self, id: str) -> None:
        machine = self._engine.machines.get(id)
        if machine is not None:
            for seen in self._instances.informer.cache.by("uid", id):
                self._panics.observe(machine, seen.key)

    def _renamed(self) -> Iterator[str]:
        for name, (known, label) in RENAMED.items():
            yield from self._program.machinery.metrics.renamed(known, name, label)
