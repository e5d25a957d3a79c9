"""Bringing about what an owner should have: server-side apply of every object, deletion of what it has no longer.

One field manager writes. Before an apply, the object in the cache is compared: when the apply would change nothing, nothing is
sent. Values that the server writes in its own way (a quantity, a default inside a list) cannot be compared from outside; for these the
answer to the last apply is kept, and nothing is sent as long as the object is still what that answer said.

What somebody takes away at once is not made at once again, or both would go on for ever: a garbage collector does that as long as the
cache has not heard that the owner is gone.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
import orjson

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, Invalid, StatusDetails
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.comparing import is_applied, same_where_said
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.reference import InvolvedObject, controlled_by_another, is_owned, owned

# What was made and is gone is made again this much later.
_APART_SECONDS = 1.0


class ForeignObject(Terminal):
    """An object of that name is there and belongs to somebody else."""

    def __init__(self, target: Target[Any], key: Key, holder: str) -> None:
        super().__init__(
            f"cannot write {target.qualified} {key}",
            why=f"it exists and belongs to {holder}",
            fix="rename one of them, or delete it if nobody needs it",
        )
        self.target = target
        self.key = key


class DesiredObject(msgspec.Struct, frozen=True):
    """One object that should be there."""

    target: Target[Any]
    data: Data
    # take over an object that is there and has no owner
    adopt: bool = False
    # apply it only to the object at this revision: it repeats what it was read to say
    at: str = ""

    @property
    def key(self) -> Key:
        metadata = self.data["metadata"]
        return Key(metadata.get("namespace") or "", metadata["name"])


class DesiredOutcome(msgspec.Struct, frozen=True):
    """The actions that were necessary."""

    applied: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: int = 0


class _Last(msgspec.Struct):
    """The last apply, and the server's answer."""

    digest: bytes
    answer: Data


class DesiredSet:
    """The desired objects of owners of one kind. Every kind that may be in a set needs its informer here, desired at the moment or not.

    Objects of the kinds in `keeps` are made and kept in order, and stay when they are no longer desired.
    """

    def __init__(self, client: Client, informers: Sequence[Informer], *, manager: str, keeps: Sequence[Informer] = ()) -> None:
        self._client = client
        self._manager = manager
        self._informers = {_place(informer.target): informer for informer in (*informers, *keeps)}
        self._pruned = {_place(informer.target): informer for informer in informers}
        self._last: dict[tuple[str, Key], _Last] = {}
        # what was made a moment ago, and when, the oldest first
        self._made: dict[tuple[str, Key, bytes], float] = {}

    async def reach(self, owner: InvolvedObject, desired_objects: Sequence[DesiredObject]) -> DesiredOutcome:
        """Apply in the order given, then delete what the owner has and should not. Raises `ForeignObject` and the client's errors."""
        applied, unchanged = [], 0
        decided = [self._informers[_place(each.target)].cache.get(each.key) for each in desired_objects]
        for each, before in zip(desired_objects, decided, strict=True):
            data = owned(each.data, owner)
            self._check_still(each, before)
            if await self._apply(owner, each, data):
                applied.append(_name(each.target, each.key))
            else:
                unchanged += 1
        kept = {(_place(each.target), each.key) for each in desired_objects}
        return DesiredOutcome(tuple(applied), await self._prune(owner, kept), unchanged)

    def _check_still(self, desired: DesiredObject, before: CachedObject | None) -> None:
        """Raise if an object of the decision is gone since. Another decision judges whether it is made again."""
        seen = self._informers[_place(desired.target)].cache.get(desired.key)
        if before is not None and (seen is None or seen.meta.uid != before.meta.uid):
            raise _moved(desired, "went while it was about to be applied")

    def check(self, owner: InvolvedObject, desired_objects: Sequence[DesiredObject]) -> None:
        """Raise `ForeignObject` for the first that belongs to somebody else; nothing is written."""
        for each in desired_objects:
            seen = self._informers[_place(each.target)].cache.get(each.key)
            if seen is not None:
                self._check_owner(owner, each, seen)

    def forget(self, owner: InvolvedObject) -> None:
        """The owner is gone: what was remembered for it is of no use."""
        for place, key in [*self._last]:
            answer = self._last[place, key].answer
            if any(each.get("uid") == owner.uid for each in answer["metadata"].get("ownerReferences") or ()):
                del self._last[place, key]

    async def _apply(self, owner: InvolvedObject, desired: DesiredObject, data: Data) -> bool:
        informer = self._informers[_place(desired.target)]
        seen = informer.cache.get(desired.key)
        if seen is not None:
            self._check_owner(owner, desired, seen)
        digest = hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).digest()
        if self._is_so(desired, data, digest, seen):
            return False
        if seen is None:
            self._check_pace(desired, digest)
        plain, sent = msgspec.structs.replace(desired.target, cls=dict), _only_that(seen, desired.at, data)
        write = WriteOptions(manager=self._manager, force=True)
        try:
            answer = await self._client.apply(plain, sent, write)
        except Invalid:
            if seen is None or not (lists := _lists(data)):
                raise
            # Others have put something beside ours into a list, and together they are not allowed: our lists are ours as a whole.
            await self._client.patch(plain, desired.key, merge_patch({"metadata": {"uid": seen.meta.uid}, **lists}))
            answer = await self._client.apply(plain, sent, write)
        self._last[_place(desired.target), desired.key] = _Last(digest, answer)
        informer.expectations.wrote(CachedObject.from_data(answer))
        if seen is None:
            self._made[_place(desired.target), desired.key, digest] = asyncio.get_running_loop().time()
        return True

    def _check_pace(self, desired: DesiredObject, digest: bytes) -> None:
        before = asyncio.get_running_loop().time() - _APART_SECONDS
        while self._made and self._made[oldest := next(iter(self._made))] <= before:
            del self._made[oldest]
        if (_place(desired.target), desired.key, digest) in self._made:
            raise _moved(desired, "went as soon as it was made")

    def _is_so(self, desired: DesiredObject, data: Data, digest: bytes, seen: CachedObject | None) -> bool:
        last = self._last.get((_place(desired.target), desired.key))
        remembered = last is not None and last.digest == digest
        if seen is None:
            # What was made a moment ago may not have come back through the watch. If it was deleted since, the watch brings us here again
            # with a cache that has seen it go.
            return remembered and last is not None and not self._shows(desired, last.answer)
        now: Data = orjson.loads(seen.raw)
        if remembered and last is not None and not self._shows(desired, last.answer):
            return True
        if is_applied(data, now, self._manager):
            # What can be seen need not be remembered.
            self._last.pop((_place(desired.target), desired.key), None)
            return True
        return (
            remembered
            and last is not None
            and last.answer["metadata"].get("uid") == seen.meta.uid
            and same_where_said(data, last.answer, now)
        )

    def _shows(self, desired: DesiredObject, answer: Data) -> bool:
        """Return whether the cache is at the revision of an answer."""
        return self._informers[_place(desired.target)].has_reached(str(answer["metadata"].get("resourceVersion")))

    def _check_owner(self, owner: InvolvedObject, desired: DesiredObject, seen: CachedObject) -> None:
        other = controlled_by_another(seen.meta, owner.uid)
        if other is not None:
            raise ForeignObject(desired.target, desired.key, f"{other.kind} {other.name}")
        if not is_owned(seen.meta, owner.uid) and not desired.adopt and not self._was_written_by_us(desired, seen):
            raise ForeignObject(desired.target, desired.key, "nobody that says so")

    def _was_written_by_us(self, desired: DesiredObject, seen: CachedObject) -> bool:
        """Somebody may have taken our owner reference off."""
        managers = orjson.loads(seen.raw)["metadata"].get("managedFields") or ()
        return any((each.get("manager"), each.get("operation")) == (self._manager, "Apply") for each in managers)

    async def _prune(self, owner: InvolvedObject, kept: set[tuple[str, Key]]) -> tuple[str, ...]:
        deleted = []
        for place, informer in self._pruned.items():
            for seen in informer.cache.by("owner", owner.uid):
                known = self._last.get((place, seen.key))
                surplus = (place, seen.key) not in kept and not seen.meta.deleting
                if surplus and (known is not None or self._was_written_by_us(DesiredObject(informer.target, {}), seen)):
                    await delete_seen(self._client, informer.target, seen)
                    self._last.pop((place, seen.key), None)
                    deleted.append(_name(informer.target, seen.key))
        return tuple(deleted)


def _only_that(seen: CachedObject | None, revision: str, data: Data) -> Data:
    """For the object that was seen and no other: one that was deleted since is not made by whoever has not heard of it."""
    known = {"uid": seen.meta.uid if seen is not None else "", "resourceVersion": revision}
    said = {name: value for name, value in known.items() if value}
    return {**data, "metadata": {**data["metadata"], **said}} if said else data


def _moved(desired: DesiredObject, how: str) -> Conflict:
    said = StatusDetails(message=f"{_name(desired.target, desired.key)} {how}", reason="Conflict", code=HTTPStatus.CONFLICT)
    return Conflict(HTTPStatus.CONFLICT, said)


def _lists(data: Data) -> Data:
    """The lists that an object says, at their places."""
    found: Data = {}
    for key, value in data.items():
        if isinstance(value, list) or (isinstance(value, dict) and key != "metadata" and (value := _lists(value))):
            found[key] = value
    return found


def _place(target: Target[Any]) -> str:
    return f"{target.plural}.{target.group}"


def _name(target: Target[Any], key: Key) -> str:
    return f"{target.qualified} {key}"
