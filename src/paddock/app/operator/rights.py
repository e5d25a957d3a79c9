"""The rights that an operator lacks, named at /readyz until they are granted.

The rights that it needs are asked for at the start and then in intervals, so that one that is missing is named before anything needs it.
Refusals add those that only the API of the front objects knows, and single namespaces.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.kubernetes.client import ownrights
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import MissingRight, RefusedRight

_LOG = logging.getLogger(__name__)
_AGAIN_SECONDS = 5.0
# An operator whose rights were all cut names some, and not thousands of namespaces.
_MOST = 20
# No namespace has this name, and so no roles of its own: the rules there are those of the whole cluster.
_NOWHERE = "-"
_UNASKED = "not checked yet"


class MissingRights:
    """The missing rights in one API. `needed` has those that are asked for, and what needs each."""

    def __init__(self, client: Client, where: str, needed: Mapping[RefusedRight, str] = {}, seconds: float = 60.0) -> None:
        self._client = client
        self._where = where
        self._needed = needed
        self._seconds = seconds
        self._asked = not needed
        # what is missing, and what needs it
        self._missing: dict[RefusedRight, str] = {}
        self._refused: set[RefusedRight] = set()
        client.on_missing_right(self._note)

    @property
    def problem(self) -> str:
        """The rights to grant; empty if none is known to be missing."""
        if not self._asked:
            return f"{self._where}{_UNASKED}"
        found = sorted(dict.fromkeys(self._said()))
        more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
        return "; ".join([*found[:_MOST], *more])

    def _said(self) -> Iterator[str]:
        for right, user in self._missing.items():
            yield f"{self._where}{right.text}, which {user} needs: {right.fix}"
        for right in self._refused:
            if not self._is_named(right):
                yield f"{self._where}{right.text}: {right.fix}"

    def _is_named(self, refused: RefusedRight) -> bool:
        """Return whether a right that was refused is among those that are missing everywhere."""
        return any(_same(each) == _same(refused) for each in self._missing)

    def _note(self, error: MissingRight) -> None:
        # The next object of that kind is refused, too.
        right = msgspec.structs.replace(error.right, name="")
        if right in self._refused or len(self._refused) >= _MOST:
            return
        self._refused.add(right)
        if not self._is_named(right):
            _LOG.warning("right missing", extra={"problem": f"{self._where}{right.text}", "fix": right.fix})

    async def watch(self) -> None:
        """Until cancelled: ask for what is needed in intervals, and for what is missing more often."""
        running = asyncio.get_running_loop()
        due = running.time()
        while True:
            if running.time() >= due:
                await self._survey()
                due = running.time() + (self._seconds if self._asked else 0.0)
            else:
                await self._ask_again()
            await asyncio.sleep(min(_AGAIN_SECONDS, self._seconds))

    async def _survey(self) -> None:
        if not self._needed:
            await self._ask_again()
            return
        try:
            granted = await ownrights.rules(self._client, _NOWHERE)
            # An authorizer need not list what it allows.
            found = [
                each
                for each in self._needed
                if (each.namespace or not any(rule.grants(each) for rule in granted)) and not await self._may(each)
            ]
        except Terminal as problem:
            # A server that does not say refuses later.
            _LOG.warning("own rights unknown", extra={"error": str(problem)})
            self._asked = True
            return
        except PaddockError:
            return
        self._asked = True
        for right in found:
            if right not in self._missing:
                self._missing[right] = self._needed[right]
                fields = {"problem": f"{self._where}{right.text}", "needed_by": self._needed[right], "fix": right.fix}
                _LOG.warning("right missing", extra=fields)
        for right in self._missing.keys() - set(found):
            self._forget(right)
        await self._ask_again()

    async def _ask_again(self) -> None:
        for right in (*[*self._missing][:_MOST], *self._refused):
            try:
                granted = await self._may(right)
            except PaddockError:
                # Nobody knows now.
                continue
            if granted:
                self._forget(right)

    def _forget(self, right: RefusedRight) -> None:
        named = right in self._missing or not self._is_named(right)
        self._missing.pop(right, None)
        self._refused.discard(right)
        if named:
            _LOG.info("right granted", extra={"right": f"{self._where}{right.text}"})

    async def _may(self, right: RefusedRight) -> bool:
        return await ownrights.may(
            self._client,
            {
                "verb": right.verb,
                "group": right.group,
                "resource": right.resource,
                "subresource": right.subresource,
                "namespace": right.namespace,
                "name": right.name,
            },
        )


def _same(right: RefusedRight) -> tuple[str, str, str, str]:
    return right.verb, right.group, right.resource, right.subresource
