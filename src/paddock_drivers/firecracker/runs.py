"""The runs of machines: one VMM process each, which lives without the driver.

    off --launch--> configured --InstanceStart--> running --pause--> paused --resume--> running --exit--> off
              '-- a driver that ends here leaves a VMM that was never started; it is ended by the next one

A VMM's root is made anew for each run, out of second names for the machine's files: what a VMM left there counts for nothing.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec

from paddock.base.clock import Clock
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker import apifacts, configuration, files, processes
from paddock_drivers.firecracker.api import ApiCall, VmmApi
from paddock_drivers.firecracker.configuration import INITRD, KERNEL, MEMORY, METRICS, SEED, SOCKET, STATE
from paddock_drivers.firecracker.host import HypervisorFacts
from paddock_drivers.firecracker.hostnetworks import HostNetwork
from paddock_drivers.firecracker.processes import LaunchPlan, VmmProcess
from paddock_drivers.firecracker.records import MicroVmFolder, MicroVmRecord, ShutdownRecord
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.kit import refusals

_LOOK_SECONDS = 0.02
_QUICK, _LOCK_SECONDS = 3.0, 10.0
# A guest's memory is written and read as a whole.
_SAVE_SECONDS = 240.0
_LIMITS = ("RLIMIT_CORE:0", "RLIMIT_NOFILE:2048")
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")


class MicroVmRuns:
    """Starts, finds and ends VMMs. Whoever calls has the machine's lock."""

    def __init__(self, settings: FirecrackerSettings, host: HypervisorFacts, network: HostNetwork, clock: Clock) -> None:
        self._settings = settings
        self._host = host
        self.network = network
        self.clock = clock

    def api(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess, seconds: float = 30.0) -> VmmApi:
        """Return the API of a machine's VMM."""
        return VmmApi(folder.root(record) / SOCKET, process.pid, seconds)

    async def state(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess) -> str:
        """Return the state that a VMM reports; empty when it reports none."""
        try:
            return await self.api(folder, record, process, _QUICK).state()
        except ProviderError:
            return ""

    async def settle(self, folder: MicroVmFolder, record: MicroVmRecord) -> tuple[MicroVmRecord, VmmProcess | None]:
        """Bring a record up to what is there, after whatever has happened to the driver or to the VMM."""
        process = processes.find(folder.path)
        if process is None:
            if record.running is not None or record.shutdown is not None or record.paused or record.process:
                restart = record.shutdown if record.shutdown is not None and record.shutdown.restart else None
                record = _off(record, restart)
                folder.write(record)
            return record, None
        if record.process != process.id:
            if await self.state(folder, record, process) not in (apifacts.RUNNING, apifacts.PAUSED):
                # Its driver ended before the machine began, or it never will answer.
                await processes.kill(process)
                return record, None
            record = msgspec.structs.replace(record, running=record.spec, process=process.id, resume="", balloon=0)
            folder.write(record)
        if record.paused or await self.state(folder, record, process) == apifacts.PAUSED:
            await self.resume(folder, record, process)
            record = msgspec.structs.replace(record, paused=False)
            folder.write(record)
        return record, process

    async def resume(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess) -> None:
        """Let a paused machine go on."""
        if await self.api(folder, record, process).state() == apifacts.PAUSED:
            await self.api(folder, record, process).send(configuration.RESUME)

    # --- starting ---------------------------------------------------------------------------------------------------------

    async def start(self, folder: MicroVmFolder, record: MicroVmRecord) -> MicroVmRecord:
        """Start a machine that is off."""
        if record.reverting:
            raise refusals.conflict(f"machine {record.name} is half way back to a snapshot", fix="revert again")
        if problem := await self._host.problem():
            raise ProviderError(ErrorKind.UNAVAILABLE, f"machine {record.name} cannot be started", why=problem)
        if await self._resolved(folder) is not None:
            raise refusals.retry_later(f"machine {record.name} is being started", 1.0)
        for nic in record.spec.nics:
            await asyncio.to_thread(self.network.ensure, nic.tap, nic.bridge, record.user)
        plan, place = self._plan(folder, record)
        record = msgspec.structs.replace(record, root=place, shutdown=None)
        folder.write(record)
        await asyncio.to_thread(self._stage, folder, record)
        (folder.path / "process.json").unlink(missing_ok=True)
        await processes.launch(folder.path, plan)
        try:
            process = await self._answering(folder, record)
            guest = folder.guest()
            calls = configuration.load(record, guest) if record.resume else configuration.boot(record, guest)
            await self.send(folder, record, process, calls)
        except BaseException:
            await self._abandon(folder)
            raise
        record = msgspec.structs.replace(record, running=record.spec, process=process.id, resume="", balloon=0)
        folder.write(record)
        return record

    async def send(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess, calls: Iterable[ApiCall]) -> None:
        """Make calls one after another."""
        for call in calls:
            long = call.path.startswith("/snapshot/") or call is configuration.START
            await self.api(folder, record, process, _SAVE_SECONDS if long else 30.0).send(call)

    def _plan(self, folder: MicroVmFolder, record: MicroVmRecord) -> tuple[LaunchPlan, str]:
        settings = self._settings
        program = ("--api-sock", SOCKET)
        if settings.jailer and record.user:
            place = f"jail/{os.path.basename(settings.program)}/{record.vmm_id}/root"
            words = (
                *(settings.jailer, "--id", record.vmm_id, "--exec-file", settings.program),
                *("--uid", str(record.user), "--gid", str(record.user), "--chroot-base-dir", str(folder.path / "jail")),
                *("--cgroup-version", "2" if _UNIFIED.exists() else "1", "--resource-limit", "no-file=2048", "--", *program),
            )
            # The jailer goes in by itself; it makes the devices of its jail.
            return LaunchPlan(argv=words, root=folder.path, limits=_LIMITS[:1]), place
        plain = (settings.program, "--id", record.vmm_id, *program)
        groups = _kvm_groups() if record.user else ()
        return LaunchPlan(argv=plain, root=folder.path / "root", limits=_LIMITS, user=record.user, groups=groups), "root"

    def _stage(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Make the VMM's root. The names in it are the VMM's to change; the files are the machine's."""
        for each in ("root", "jail"):
            files.discard(folder.path / each)
        root = folder.root(record)
        with files.failures("prepare a machine's start"):
            (root / "disks").mkdir(parents=True, mode=0o711)
            for name in (KERNEL, *((INITRD,) if record.spec.initrd else ()), *((SEED,) if record.spec.seed else ())):
                os.link(folder.path / name, root / name)
            for disk in record.spec.disks:
                os.link(folder.disk(disk), root / disk.file)
            if record.resume:
                for name in (STATE, MEMORY):
                    os.link(folder.snapshot(record.resume) / name, root / name)
            if record.spec.metrics:
                (root / METRICS).touch(mode=0o600)
            give(record.user, root, root / "disks", *(root / each for each in (METRICS,) if record.spec.metrics))

    async def _answering(self, folder: MicroVmFolder, record: MicroVmRecord) -> VmmProcess:
        """Wait until a new VMM answers."""
        loop = asyncio.get_running_loop()
        ends, known = loop.time() + self._settings.start_seconds, False
        while loop.time() < ends:
            process = processes.find(folder.path)
            if process is None and known:
                break
            known = known or process is not None
            if process is not None and await self.state(folder, record, process):
                return process
            await asyncio.sleep(_LOOK_SECONDS)
        words = processes.last_words(folder.path)
        why = words or ("it has ended" if known else f"it does not answer within {self._settings.start_seconds:g} s")
        raise ProviderError(ErrorKind.UNAVAILABLE, f"Firecracker does not start machine {record.name}", why=why)

    async def _abandon(self, folder: MicroVmFolder) -> None:
        """End a VMM that could not be made the machine."""
        with contextlib.suppress(ProviderError):
            if (process := processes.find(folder.path)) is not None:
                await asyncio.shield(processes.kill(process))

    # --- ending -----------------------------------------------------------------------------------------------------------

    async def stop(self, folder: MicroVmFolder, record: MicroVmRecord) -> MicroVmRecord:
        """End a machine at once. One that is off stays off."""
        process = await self._resolved(folder)
        if process is not None:
            await processes.kill(process)
        if record != (ended := _off(record, None)):
            folder.write(ended)
        return ended

    async def _resolved(self, folder: MicroVmFolder) -> VmmProcess | None:
        """Return the process of a machine, if it lives. A lock without one is of a process that begins, or has nearly ended."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + _LOCK_SECONDS
        while (process := processes.find(folder.path)) is None and processes.is_starting(folder.path):
            if loop.time() > ends:
                raise refusals.retry_later(f"machine {folder.name} is being started or ended", 1.0)
            await asyncio.sleep(_LOOK_SECONDS)
        return process

    async def remove_networks(self, record: MicroVmRecord) -> None:
        """Take away the taps of a machine."""
        specs = (record.spec, *((record.running,) if record.running is not None else ()))
        for tap in {nic.tap for spec in specs for nic in spec.nics}:
            await asyncio.to_thread(self.network.remove, tap)

    # --- pausing ----------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def paused(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess | None) -> AsyncIterator[None]:
        """Keep a machine still, if it runs. A driver that ends meanwhile leaves a mark, by which the next one lets it go on."""
        if process is None:
            yield
            return
        folder.write(msgspec.structs.replace(record, paused=True))
        try:
            await self.api(folder, record, process).send(configuration.PAUSE)
            yield
        finally:
            with contextlib.suppress(ProviderError):
                await self.resume(folder, record, process)
                folder.write(msgspec.structs.replace(record, paused=False))

    async def save(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess, target: Path) -> None:
        """Have a paused VMM write its memory and state, and take both."""
        root = folder.root(record)
        for name in (STATE, MEMORY):
            (root / name).unlink(missing_ok=True)
        await self.send(folder, record, process, [configuration.SAVE])
        with files.failures("keep a machine's memory"):
            for name in (STATE, MEMORY):
                os.rename(root / name, target / name)
                # A VMM could have put anything there.
                if not stat.S_ISREG((target / name).lstat().st_mode):
                    raise OSError("the VMM has left no file")
                os.chown(target / name, os.geteuid(), record.user or os.getegid(), follow_symlinks=False)
                os.chmod(target / name, 0o440 if record.user else 0o400)


def give(user: int, *paths: Path) -> None:
    """Make files a VMM's user's."""
    if user:
        for each in paths:
            os.chown(each, user, user, follow_symlinks=False)


def _off(record: MicroVmRecord, shutdown: ShutdownRecord | None) -> MicroVmRecord:
    return msgspec.structs.replace(record, running=None, process="", shutdown=shutdown, paused=False, balloon=0)


def _kvm_groups() -> tuple[int, ...]:
    """The group that may open /dev/kvm, where one may."""
    try:
        found = os.stat("/dev/kvm")
    except OSError:
        return ()
    return (found.st_gid,) if found.st_mode & 0o060 == 0o060 else ()
