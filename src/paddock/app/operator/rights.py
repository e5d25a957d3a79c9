"""The rights that an operator lacks: learnt from refusals, named at /readyz, and forgotten when the server says that they are granted."""

import asyncio
import logging

import msgspec

from paddock.base.errors import PaddockError
from paddock.client import ownrights
from paddock.client.client import Client
from paddock.client.errors import MissingRight, RefusedRight

_LOG = logging.getLogger(__name__)
_AGAIN_SECONDS = 5.0
# An operator whose rights were all cut names some, and not thousands of namespaces.
_MOST = 20


class MissingRights:
    """The missing rights in one API."""

    def __init__(self, client: Client, where: str) -> None:
        self._client = client
        self._where = where
        self._missing: dict[RefusedRight, str] = {}
        client.on_missing_right(self._note)

    @property
    def problem(self) -> str:
        """The rights to grant; empty if none is known to be missing."""
        found = sorted(f"{self._where}{each.text}: {fix}" for each, fix in self._missing.items())
        return "; ".join(found)

    def _note(self, error: MissingRight) -> None:
        # The next object of that kind is refused, too.
        right = msgspec.structs.replace(error.right, name="")
        if right in self._missing or len(self._missing) >= _MOST:
            return
        self._missing[right] = error.fix
        _LOG.warning("right missing", extra={"problem": f"{self._where}{right.text}", "fix": error.fix})

    async def watch(self) -> None:
        """Until cancelled: ask for what is missing again, and forget what was granted."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            for right in tuple(self._missing):
                if await self._is_granted(right):
                    del self._missing[right]
                    _LOG.info("right granted", extra={"right": f"{self._where}{right.text}"})

    async def _is_granted(self, right: RefusedRight) -> bool:
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        try:
            return await ownrights.may(self._client, attributes)
        except PaddockError:
            # Nobody knows now.
            return False
