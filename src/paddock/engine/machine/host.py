"""The shared environment of machines: the clock, the host's facts, the queue of starts, the users."""

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from paddock.base.clock import Clock, SystemClock
from paddock.engine.machine import limits
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.shares import NamespaceShares
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.startslots import StartSlots
from paddock.engine.machine.users import UserRange


class Timeouts(Struct, frozen=True):
    """The longest times of operations, in seconds."""

    # QEMU from its start until its monitor answers; a busy host may need long
    start: float = 120.0
    helper: float = 20.0
    # between two presses of the power button
    press: float = 5.0
    # QEMU from `quit`, or a kill, until it is gone
    quit: float = 10.0
    # the guest until it lets go of a device
    unplug: float = 20.0
    # between looks at whether a full disk has room again, and at the size of the serial log
    poll: float = 5.0
    # between questions whether QEMU answers; an answer that takes so long is a reason to look at the process; after so long it hangs
    beat: float = 10.0
    suspicion: float = 5.0
    silence: float = 20.0
    # a guest that has not reset itself for so long is up; one that did so as often before does not get up
    boot: float = 300.0
    resets: int = 5


class MachineEnvironment(Struct, frozen=True):
    # what a command line has to know of this host, for this machine
    host_view: Callable[[MachineConfig], HostView]
    # lets few machines boot at a time: together they would all be late
    queue: StartQueue
    users: UserRange = field(default_factory=UserRange)
    clock: Clock = field(default_factory=SystemClock)
    times: Timeouts = Timeouts()
    groups: limits.Hierarchies = field(default_factory=limits.on_this_host)


class SharedHost(Struct, frozen=True):
    """The shared environment of the owners of all machines."""

    surroundings: MachineEnvironment
    turns: StartSlots
    shares: NamespaceShares
    # gets the id of a machine whose observation changed
    tell: Callable[[str], None]
    # held by a machine that moves into another QEMU: it has its memory twice for so long
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)
