"""The action of a machine for each request, as a table. Pure: no process, no clock.

               defined   queued    starting  running   paused    stopping  suspended ended     offered   moved
    START      go        already   already   already   already   refuse    go        go        refuse    refuse
    STOP       already   go        go        go        go        go        go        already   refuse    already
    PAUSE      refuse    refuse    refuse    go        already   refuse    refuse    refuse    refuse    refuse
    RESUME     refuse    refuse    refuse    already   go        refuse    refuse    refuse    refuse    refuse
    RESET      refuse    refuse    refuse    go        go        refuse    refuse    refuse    refuse    refuse
    PRESS      refuse    refuse    refuse    go        refuse    already   refuse    refuse    refuse    refuse
    RENEW      refuse    refuse    refuse    go        refuse    refuse    refuse    refuse    refuse    refuse
    SUSPEND    refuse    refuse    refuse    go        go        refuse    already   refuse    refuse    refuse
    RECEIVE    go        refuse    refuse    refuse    refuse    refuse    already   refuse    refuse    refuse
    SEND       refuse    refuse    refuse    go        refuse    refuse    refuse    refuse    already   already
    ARRIVE     go        refuse    refuse    refuse    refuse    refuse    refuse    refuse    refuse    refuse
    CHANGE     refuse    refuse    refuse    go        go        refuse    refuse    refuse    refuse    refuse   plug, unplug, resize ...
    LOOK       refuse    refuse    refuse    go        go        go        refuse    refuse    refuse    refuse   screenshot, console ...
    FORGET     go        refuse    refuse    refuse    refuse    refuse    go        go        refuse    go

The start of a suspended machine resumes its guest, and a stop throws its saved state away. A machine that never ran becomes a suspended one
by RECEIVE, with the guest of a snapshot. The guest of an offered machine was handed over to another host, and that of a moved one runs
there.

A QEMU that does not answer gets no command but to stop: it would do the rest when nobody expects it any more.
A stop overtakes: requests that wait or run when it comes are refused with `Stopping`, unless they only look.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Literal

from msgspec import Struct

from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.observation import Observation

State = Literal["defined", "queued", "starting", "running", "paused", "stopping", "suspended", "ended", "offered", "moved"]
STATES: tuple[State, ...] = ("defined", "queued", "starting", "running", "paused", "stopping", "suspended", "ended", "offered", "moved")


class Verb(Enum):
    """A request to a machine."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"
    PRESS = "press the power button of"
    RENEW = "renew"
    SUSPEND = "suspend"
    RECEIVE = "give a saved guest to"
    SEND = "migrate"
    ARRIVE = "receive the guest of"
    CHANGE = "change"
    LOOK = "look at"
    FORGET = "forget"


class Go(Struct, frozen=True):
    pass


class Already(Struct, frozen=True):
    """It is so; nothing has to be done."""


class Refuse(Struct, frozen=True):
    reason: str
    why: str
    fix: str


Rule = Go | Already | Refuse

_GO = Go()
_ALREADY = Already()
_NOT_RUNNING = Refuse("NotRunning", "it does not run", "start it first")
_STARTING = Refuse("StillStarting", "it is being started", "wait until it runs")
# what is done without QEMU
_WITHOUT_MONITOR = (Verb.START, Verb.STOP, Verb.RECEIVE, Verb.FORGET)
_STOPPING = Refuse("Stopping", "it is being stopped", "wait until it has ended")
_RUNNING = Refuse("StillRunning", "its process lives", "stop it first")
_SUSPENDED = Refuse("Suspended", "it is suspended to disk", "resume it first")
_ENDED = Refuse("Ended", "it has run already", "make a new one")
_OFFERED = Refuse(
    "Offered", "its guest was handed over to another host, which has not said yet whether it runs there", "wait for its answer"
)
_MOVED = Refuse("Moved", "its guest runs on another host", "ask there")
_PAUSED = Refuse("Paused", "it is paused", "resume it first")


def _row(*rules: Rule) -> dict[State, Rule]:
    return dict(zip(STATES, rules, strict=True))


RULES: Mapping[Verb, Mapping[State, Rule]] = {
    Verb.START: _row(_GO, _ALREADY, _ALREADY, _ALREADY, _ALREADY, _STOPPING, _GO, _GO, _OFFERED, _MOVED),
    Verb.STOP: _row(_ALREADY, _GO, _GO, _GO, _GO, _GO, _GO, _ALREADY, _OFFERED, _ALREADY),
    Verb.PAUSE: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _ALREADY, _STOPPING, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.RESUME: _row(_NOT_RUNNING, _STARTING, _STARTING, _ALREADY, _GO, _STOPPING, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.RESET: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _GO, _STOPPING, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.PRESS: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _PAUSED, _ALREADY, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.RENEW: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _PAUSED, _STOPPING, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.SUSPEND: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _GO, _STOPPING, _ALREADY, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.RECEIVE: _row(_GO, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _ALREADY, _ENDED, _OFFERED, _MOVED),
    Verb.SEND: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _PAUSED, _STOPPING, _SUSPENDED, _NOT_RUNNING, _ALREADY, _ALREADY),
    Verb.ARRIVE: _row(_GO, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _SUSPENDED, _ENDED, _OFFERED, _MOVED),
    Verb.CHANGE: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _GO, _STOPPING, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.LOOK: _row(_NOT_RUNNING, _STARTING, _STARTING, _GO, _GO, _GO, _SUSPENDED, _NOT_RUNNING, _OFFERED, _MOVED),
    Verb.FORGET: _row(_GO, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _RUNNING, _GO, _GO, _OFFERED, _GO),
}


def state(observed: Observation) -> State:
    """The column of the table."""
    if observed.handed:
        return "offered" if observed.handed == "offered" else "moved"
    if observed.phase == "running" and observed.paused:
        return "paused"
    return observed.phase


def judge(verb: Verb, observed: Observation) -> Rule:
    """Return the rule of the table."""
    return RULES[verb][state(observed)]


def admit(verb: Verb, observed: Observation, name: str, action: str = "") -> bool:
    """True: do it. False: it is so already. Raises `RequestRefused`, or `Unanswered`; `action` replaces the verb in messages."""
    rule = judge(verb, observed)
    if isinstance(rule, Refuse):
        raise RequestRefused(f"cannot {action or verb.value} machine {name}", reason=rule.reason, why=rule.why, fix=rule.fix)
    if observed.fault is not None and observed.fault.silent and verb not in _WITHOUT_MONITOR:
        why = observed.fault.message.rstrip(".")
        raise Unanswered(f"cannot {action or verb.value} machine {name}", why=why, fix="it was not told; try again when it answers")
    return isinstance(rule, Go)
