"""Workers: what a call leaves running, known by its UPID."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.kit.proxmox.errors import ApiError, TaskFailure
from tests.kit.proxmox.inventory import Clock

UPID = re.compile(
    r"UPID:(?P<node>[a-zA-Z0-9-]+):(?P<pid>[0-9A-F]{8}):(?P<pstart>[0-9A-F]{8,9}):(?P<starttime>[0-9A-F]{8})"
    r":(?P<type>[^:\s/]+):(?P<id>[^:\s/]*):(?P<user>[^:\s/]+):"
)
# The status of a worker that was killed: its log has no last line.
UNEXPECTED = "unexpected status"
# How long a call or worker waits for the lock of a machine's configuration file.
LOCK_SECONDS = 10.0


@dataclass
class Task:
    """A worker. `finish` is its work, done when its time is over; `undo` cleans up after one that fails."""

    upid: str
    node: str
    kind: str
    id: str
    user: str
    started: float
    due: float
    finish: Callable[["Task"], None]
    undo: Callable[[], None] = lambda: None
    log: list[str] = field(default_factory=list)
    ended: float | None = None
    status: str = ""
    # The machines whose configuration it has locked: alone, or with others that only read.
    locks: frozenset[int] = frozenset()
    shares: frozenset[int] = frozenset()
    # True once the log is gone, as after weeks or the loss of the node's disk.
    forgotten: bool = False

    @property
    def is_running(self) -> bool:
        return self.ended is None

    @property
    def owner(self) -> str:
        """The user, without the name of a token."""
        return self.user.partition("!")[0]

    def write(self, line: str) -> None:
        """Write a line to the log."""
        self.log.append(line)


@dataclass(frozen=True)
class TaskFault:
    """What becomes of the next task of a type: `status` is its failure, `seconds` how long it takes, `vanish` loses its log."""

    kind: str
    status: str = ""
    seconds: float | None = None
    vanish: bool = False
    # True: the work is done although the task reports a failure, as when the worker dies after its last step.
    work_done: bool = False


class Tasks:
    """All tasks of the cluster. `seconds` is how long one takes."""

    def __init__(self, clock: Clock, seconds: float = 0.02) -> None:
        self.all: dict[str, Task] = {}
        self.seconds = seconds
        self.faults: list[TaskFault] = []
        self._clock = clock
        self._pid = 0x1000

    def start(self, where: tuple[str, str, str], user: str, finish: Callable[[Task], None], **more: object) -> str:
        """Start a worker on (node, type, id); return its UPID. `seconds` and `undo` may follow."""
        node, kind, named = where
        self._pid += 1
        now = self._clock()
        upid = f"UPID:{node}:{self._pid:08X}:{int(now) % 0xFFFFFFF:08X}:{int(now):08X}:{kind}:{named}:{user}:"
        fault = next((each for each in self.faults if each.kind in (kind, "*")), None)
        given = more.get("seconds")
        seconds = float(given) if isinstance(given, int | float) else self.seconds
        if fault is not None:
            self.faults.remove(fault)
            seconds = seconds if fault.seconds is None else fault.seconds
            finish = _faulty(finish, fault)
        task = Task(upid, node, kind, named, user, now, now + seconds, finish)
        if callable(undo := more.get("undo")):
            task.undo = undo
        self.all[upid] = task
        return upid

    def advance(self, online: Callable[[str], bool] = lambda node: True) -> None:
        """Finish what is due, in order; workers of a node that is away stand still."""
        now = self._clock()
        while due := [each for each in self.all.values() if each.is_running and each.due <= now and online(each.node)]:
            self._end(min(due, key=lambda each: each.due))

    def _end(self, task: Task) -> None:
        task.ended = max(task.due, task.started)
        try:
            task.finish(task)
        except (TaskFailure, ApiError) as error:
            task.undo()
            task.status = str(error)
            if task.status != UNEXPECTED:
                task.write(f"TASK ERROR: {task.status}")
        else:
            task.status = "OK"
            task.write("TASK OK")

    def hold(self, upid: str, locks: frozenset[int], shares: frozenset[int], patience: float = LOCK_SECONDS) -> None:
        """Let a new task lock configurations. It waits for those that have them, and fails if that takes longer than its patience."""
        task = self.all[upid]
        ends = [(each.due, vmid) for vmid in locks | shares for each in self.holders(vmid, shared=vmid in shares) if each is not task]
        if not ends:
            task.locks, task.shares = locks, shares
            return
        latest, vmid = max(ends)
        if latest - task.started <= patience:
            task.locks, task.shares = locks, shares
            task.due = max(task.due, latest + self.seconds)
            return

        def fail(_: Task) -> None:
            raise TaskFailure(lock_timeout(vmid))

        task.finish, task.due = fail, task.started + patience

    def holders(self, vmid: int, *, shared: bool = False) -> list[Task]:
        """Return the running tasks that somebody who wants a configuration must wait for."""
        return [each for each in self.all.values() if each.is_running and (vmid in each.locks or (vmid in each.shares and not shared))]

    def wait_for_lock(self, vmid: int) -> None:
        """Let the call wait for a configuration, as the real one does for up to 10 seconds; what it waits for ends at once."""
        now = self._clock()
        for task in self.holders(vmid):
            if task.due - now > LOCK_SECONDS:
                raise TaskFailure(lock_timeout(vmid))
        for task in self.holders(vmid):
            task.due = min(task.due, now)
        self.advance()

    def stop(self, task: Task) -> None:
        """Interrupt a worker."""
        if task.is_running:
            task.ended, task.status = self._clock(), "received interrupt"
            task.undo()
            task.write("TASK ERROR: received interrupt")

    def of_machine(self, vmid: int) -> Iterator[Task]:
        """Yield the running tasks of a machine."""
        return (each for each in self.all.values() if each.is_running and each.id == str(vmid))


def lock_timeout(vmid: int) -> str:
    """Return the failure of who could not lock a machine's configuration."""
    return f"can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout"


def _faulty(finish: Callable[[Task], None], fault: TaskFault) -> Callable[[Task], None]:
    def work(task: Task) -> None:
        if fault.vanish:
            task.forgotten = True
        if not fault.status or fault.work_done:
            finish(task)
        if fault.status:
            raise TaskFailure(fault.status)

    return work
