"""The objects of one kind, kept by a list and a watch, whatever ends them."""

import asyncio
from collections.abc import Callable

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import BOOKMARK, DELETED, Client
from paddock.kubernetes.client.errors import Expired, Forbidden, NotFound, Unauthorized, Unavailable, Unreachable
from paddock.kubernetes.client.options import Selection, WatchOptions
from paddock.kubernetes.client.target import Key, Target

# A kind that the server does not have, or that the user may not see, may come.
_ABSENT_SECONDS = 60.0
_BETWEEN_SECONDS = 0.1
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
EVERYTHING = Selection()
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class KindFeed:
    """One list and watch. `changed` is called after every change of what it holds."""

    def __init__(
        self,
        client: Client,
        target: Target[Data],
        changed: Callable[["KindFeed"], None],
        *,
        selection: Selection = EVERYTHING,
        own_namespace: str = "",
        most: int = 0,
    ) -> None:
        """`own_namespace` is where the feed looks if the user may not see the kind everywhere. `most` keeps the newest objects only."""
        self._client = client
        self.target = target
        self._own = own_namespace
        self._changed = changed
        self._most = most
        self._pause = _FIRST_PAUSE
        self._whole = self._selection = selection
        self.objects: dict[Key, Data] = {}
        # whether the server has answered, even if it does not know the user
        self.answered = False
        # the objects are there, or the reason why the user does not see them
        self.listed = False
        # why the user does not see the kind; empty: sees it
        self.missing = ""
        # why the server is away; empty: it is not
        self.lost = ""
        # the last answer, if the server does not know the user
        self.unauthorized: Unauthorized | None = None

    async def run(self) -> None:
        """Follow the kind until the task is cancelled."""
        while True:
            try:
                revision = await self._list()
                await self._watch(revision)
            except Expired:
                continue
            except NotFound:
                # A group that is not served, or a definition that was deleted.
                self._see_nothing("the server does not have this kind")
                await asyncio.sleep(_ABSENT_SECONDS)
            except Forbidden as error:
                await self._narrow(error)
            except PaddockError as error:
                await self._retry(error)

    async def _list(self) -> str:
        found = await self._client.list(self.target, self._selection)
        self.objects = {_key(each): _trimmed(each) for each in found.items}
        self._bound()
        self._settle("")
        return found.revision

    async def _watch(self, revision: str) -> None:
        """Follow changes from a revision on; a watch that ends, or a server that goes, is followed up from the last one."""
        while True:
            try:
                async for frames in self._client.frames(self.target, self._selection, WatchOptions(revision=revision)):
                    if self.lost:
                        self._settle("")
                    self._pause = _FIRST_PAUSE
                    for frame in frames:
                        revision = self._take(frame.type, self.target.read(bytes(frame.object))) or revision
                    if frames:
                        self._bound()
                        self._changed(self)
                # A server that is stopping ends watches as soon as they begin.
                await asyncio.sleep(_BETWEEN_SECONDS)
            except Unreachable as error:
                await self._retry(error)

    def _take(self, type: str, data: Data) -> str:
        if type == DELETED:
            self.objects.pop(_key(data), None)
        elif type != BOOKMARK:
            self.objects[_key(data)] = _trimmed(data)
        return str(data["metadata"].get("resourceVersion") or "")

    async def _narrow(self, error: Forbidden) -> None:
        """Look into the user's own namespace, if that is all that the user may see."""
        if not self._selection.namespace and self.target.namespaced and self._own:
            self._selection = Selection(namespace=self._own)
            return
        self._see_nothing(str(error))
        await asyncio.sleep(_ABSENT_SECONDS)
        self._selection = self._whole

    async def _retry(self, error: PaddockError) -> None:
        self.answered |= not isinstance(error, Unreachable)
        self.unauthorized = error if isinstance(error, Unauthorized) else None
        away = isinstance(error, Unreachable | Unauthorized)
        self.lost = str(error) if away or isinstance(error, Unavailable) else ""
        if not away and not self.listed:
            self.missing, self.listed = str(error), True
        self._changed(self)
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _see_nothing(self, why: str) -> None:
        self.objects = {}
        self._settle(why)

    def _settle(self, missing: str) -> None:
        self.missing, self.lost, self.listed, self.answered, self.unauthorized = missing, "", True, True, None
        self._pause = _FIRST_PAUSE
        self._changed(self)

    def _bound(self) -> None:
        if self._most and len(self.objects) > self._most:
            # Dictionaries keep the order in which objects came.
            for key in list(self.objects)[: len(self.objects) - self._most]:
                del self.objects[key]


def _key(data: Data) -> Key:
    metadata = data["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def _trimmed(data: Data) -> Data:
    """Take away what nobody is shown, half of an object often."""
    data["metadata"].pop("managedFields", None)
    (data["metadata"].get("annotations") or {}).pop(_APPLIED, None)
    return data
