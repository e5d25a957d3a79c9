"""After a restart of Paddock: what became of a machine. Its lock tells whether a QEMU lives, its record and QEMU itself the rest."""

import logging

from paddock.engine.machine.directory import RunRecord
from paddock.engine.machine.errors import StartFailed
from paddock.engine.machine.livefiles import handed_of
from paddock.engine.machine.observation import Observation, Phase
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import boot_id, holders, start_ticks
from paddock.engine.machine.renewal import settle
from paddock.engine.machine.startup import over

_LOG = logging.getLogger(__name__)


async def adopt(owner: MachineOwner) -> None:
    """Called once, before anything else is done with the machine."""
    kept = owner.directory.read_record()
    owner.recall(record=kept or RunRecord())
    await settle(owner)
    saved, handed = owner.directory.is_saved, handed_of(owner.directory)
    if kept is None and owner.directory.beside.locked():
        what = owner.directory.path
        detail = f"which of two QEMUs is the machine's cannot be known, as {what}/process.json is lost; end both, then restart Paddock"
        owner.observe(phase="running", detail=detail)
        return
    if not owner.directory.locked():
        _without_process(owner)
        return
    record = owner.record
    started = owner.directory.read_started() or owner.config
    # One whose guest is on disk does not run it: it was about to end, or it was reading the state.
    phase: Phase = "stopping" if saved or handed else "running" if record.begun else "starting"
    seen = Observation(phase=phase, run=record.run, accelerator=record.accelerator, times=record.times, handed=handed)
    owner.recall(observed=seen, started=started)
    try:
        owner.watch(_find_process(owner))
    except StartFailed as error:
        if not owner.directory.locked():
            # It went just now.
            _without_process(owner)
            return
        # The lock is held by something that cannot be found: whatever it is, the machine must not be started beside it.
        lock = owner.directory.path / "lock"
        owner.observe(phase="running", detail=f"{error}; end the process that has {lock} open, then restart Paddock")
        return
    process = owner.run.process
    if process is not None and process.pid != record.pid:
        owner.save(active=True, pid=process.pid, ticks=process.ticks)
    owner.observe(pid=owner.record.pid)
    if saved or handed == "decided":
        owner.save(evidence=(*record.evidence, "saved"))
        owner.kill()
        return
    _enclose(owner)
    for name, (pid, ticks) in record.helpers.items():
        if ticks and start_ticks(pid) == ticks:
            owner.helpers.watch(name, pid)
    if record.stop is not None:
        owner.observe(phase="stopping", deadline=record.stop.deadline)
    await _catch_up(owner)


async def _catch_up(owner: MachineOwner) -> None:
    if owner.record.arriving:
        # It may wait for long, and nobody waits for it.
        owner.background(owner.catch_up())
        return
    await owner.catch_up()
    owner.pursue_stop()


def _enclose(owner: MachineOwner) -> None:
    """A QEMU of an earlier version is in no group of its namespace, nor one whose Paddock ended just after its start."""
    shares, started, pid = owner.shared.shares, owner.started, owner.record.pid
    is_there = shares.holds(owner.id, started, pid)
    pids = [pid, *(pid for pid, ticks in owner.record.helpers.values() if ticks and start_ticks(pid) == ticks)]
    shares.enclose(owner.id, started, pids)
    if is_there or not shares.are_kept:
        return
    if shares.holds(owner.id, started, pid):
        shares.remove_former(owner.id)
        _LOG.info("adopted machine moved into the control group of its namespace", extra={"machine": owner.id})
    else:
        _LOG.warning("adopted machine stays outside of the control group of its namespace", extra={"machine": owner.id})


def _without_process(owner: MachineOwner) -> None:
    record = owner.record
    times = record.times
    if not record.active:
        if record.end is not None or owner.directory.is_saved:
            owner.recall(observed=over(owner.directory, Observation(run=record.run, end=record.end, times=times)))
        owner.directory.drop_leftovers()
    elif not record.pid and not record.begun and record.stop is None and record.boot == boot_id():
        # Paddock went before QEMU was started, or before the guest could do anything.
        owner.recall(observed=Observation(phase="queued", run=record.run, times=times))
        owner.begin()
    else:
        owner.recall(observed=Observation(phase="running", run=record.run, times=times))
        owner.finish(None, same_boot=record.boot == boot_id())


def _find_process(owner: MachineOwner) -> int:
    record = owner.record
    if record.pid and record.ticks and start_ticks(record.pid) == record.ticks:
        return record.pid
    # Killed between the start of QEMU and the note of its number.
    found = holders(owner.directory.path / "lock")
    if not found:
        raise StartFailed(f"cannot find the process of machine {owner.id}", why="its lock is held, by nobody that can be seen")
    return found[0]
