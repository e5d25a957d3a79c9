"""The rights of a user, as the API server judges them: asked for before a person is refused, and remembered for a minute."""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.kinds import VM, MachineKind
from paddock.fleet.machines import snapshots
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client import ownrights
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Target
from paddock.web.answers.machine import WebActionState

_SECONDS = 60.0
_MOST = 2000
SUBRESOURCES = "subresources.kubevirt.io"


class AccessCheck(msgspec.Struct, frozen=True):
    """A right on a kind."""

    verb: str
    group: str
    resource: str
    subresource: str = ""

    @classmethod
    def of(cls, verb: str, target: Target[Data]) -> "AccessCheck":
        """Return the right to a verb on a kind."""
        return cls(verb, target.group, target.plural)


class RightsReview:
    """Asks the API server what the user may do."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[tuple[AccessCheck, str], tuple[float, bool]] = {}

    async def may(self, check: AccessCheck, namespace: str) -> bool:
        """Return whether the user has a right in a namespace; empty means in all. A server that does not say decides later."""
        now, key = self._clock.seconds(), (check, namespace)
        asked, allowed = self._answers.get(key, (now - _SECONDS, True))
        if now - asked < _SECONDS:
            return allowed
        try:
            allowed = await ownrights.may(self._client, {**msgspec.to_builtins(check), "namespace": namespace})
        except PaddockError:
            return True
        if len(self._answers) >= _MOST:
            self._answers.clear()
        self._answers[key] = now, allowed
        return allowed


def refusal(check: AccessCheck, namespace: str) -> str:
    """Return why the user may not do something."""
    resource = "/".join(filter(None, (check.resource, check.subresource)))
    where = f' in namespace "{namespace}"' if namespace else ""
    return f"the user may not {check.verb} {resource}{f' of {check.group}' if check.group else ''}{where}"


def needs(kind: MachineKind, verb: str) -> Iterator[AccessCheck]:
    """Yield the rights that a verb needs for a machine of a kind."""
    own = kind.target
    match verb:
        case "protect" | "unprotect":
            yield AccessCheck.of("patch", own)
        case "delete":
            yield AccessCheck.of("delete", own)
        case "create" | "clone":
            yield AccessCheck.of("create", own)
        case "snapshot":
            yield AccessCheck.of("create", snapshots.kind_of(kind))
        case "restore" if kind.adapter.snapshot_kind is not None:
            yield AccessCheck.of("patch", own)
        case "restore":
            yield AccessCheck.of("create", snapshots.RESTORES)
        case "pause" | "unpause" | "reset":
            yield AccessCheck("update", SUBRESOURCES, "virtualmachineinstances", verb)
        case "suspend" | "resume":
            yield AccessCheck("update", SUBRESOURCES, VM.plural, verb)
        case "restart" if not kind.adapter.restarts_by_power:
            yield AccessCheck("update", SUBRESOURCES, VM.plural, verb)
        case "start" | "stop" if kind is VM:
            yield AccessCheck("update", SUBRESOURCES, VM.plural, verb)
        case "start" | "stop" | "restart":
            yield AccessCheck.of("patch", own)


async def lack(review: RightsReview, kind: MachineKind, namespace: str, verb: str) -> str:
    """Return why the user may not carry out a verb on machines of a kind in a namespace; empty if the user may."""
    for check in needs(kind, verb):
        if not await review.may(check, namespace):
            return refusal(check, namespace)
    return ""


async def judged(review: RightsReview, machine: MachineView, actions: Sequence[WebActionState]) -> list[WebActionState]:
    """Return the actions; those that the state allows and the rights do not are refused with the reason."""

    async def one(action: WebActionState) -> WebActionState:
        why = await lack(review, machine.kind, machine.namespace, action.verb) if action.allowed else ""
        return WebActionState(verb=action.verb, allowed=False, reason=why) if why else action

    return list(await asyncio.gather(*(one(each) for each in actions)))
