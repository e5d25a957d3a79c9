"""Conversion by a webhook: what is asked, what is remembered, and how many objects go into one question.

Objects travel as bytes. The bytes of a stored object and the version wanted decide what it is converted to, so the answer is
remembered under them, up to a size, and several who want the same wait for one question.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.failure import Failure
from paddock.server.custom import review
from paddock.server.custom.pipeline import StructuralPipeline
from paddock.server.objects.encoding import decode, encode
from paddock.server.resources.conversion import ConvertedForm
from paddock.server.webhooks import Caller, CallFailed, ServiceView, address_of

SECONDS = 30.0
# One question: this many objects, or about as many bytes.
MOST_OBJECTS, MOST_BYTES = 500, 4 * 1024 * 1024
# What one version of one kind may remember.
REMEMBERED_BYTES = 32 * 1024 * 1024


class Webhook:
    """The webhook of a definition."""

    def __init__(self, crd: Data, pipelines: Mapping[str, StructuralPipeline], caller: Caller, view: ServiceView) -> None:
        spec = crd["spec"]
        self._asked = spec["conversion"]["webhook"]
        self._pipelines = {f"{spec['group']}/{name}": pipeline for name, pipeline in pipelines.items()}
        self._caller = caller
        self._view = view
        self.stored_version = next(f"{spec['group']}/{each['name']}" for each in spec["versions"] if each.get("storage"))
        self.retired = False

    def settled(self, data: Data) -> Data:
        """A stored object as its own version has it now."""
        pipeline = self._pipelines.get(data["apiVersion"])
        return data if pipeline is None else {**pipeline.settle(data), "apiVersion": data["apiVersion"]}

    async def convert(self, objects: Sequence[Data], wanted: str) -> list[Data]:
        """Objects of other versions in the wanted one; raises a `Failure`."""
        try:
            return await self._ask(objects, wanted)
        except review.BadConversion as wrong:
            raise Failure(500, "", wrong.what) from None

    async def _ask(self, objects: Sequence[Data], wanted: str) -> list[Data]:
        asked = review.question(objects, wanted, str(uuid.uuid4()), self._asked.get("conversionReviewVersions") or ())
        answer = await self._answer(asked)
        pipeline = self._pipelines[wanted]
        return [{**pipeline.prune(each), "apiVersion": wanted} for each in review.converted(asked, answer)]

    async def _answer(self, asked: Data) -> Any:
        kind = review.kind_of(asked["request"]["objects"][0])
        try:
            address = address_of(self._asked["clientConfig"], self._view)
            said = await self._caller.post(address, orjson.dumps(asked), SECONDS)
        except CallFailed as failed:
            raise review.BadConversion(f"conversion webhook for {kind} failed: {failed}") from None
        if not 200 <= said.status < 300:
            text = said.body[:200].decode(errors="replace").strip()
            raise review.BadConversion(f"conversion webhook for {kind} failed: the webhook answered {said.status}: {text}")
        try:
            return orjson.loads(said.body)
        except orjson.JSONDecodeError as error:
            raise review.BadConversion(f"conversion webhook for {kind} failed: the answer is no JSON: {error}") from None


class WebhookConverter:
    """Into and out of one version."""

    def __init__(self, webhook: Webhook, version: str) -> None:
        self._webhook = webhook
        self._version = version
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._coming: dict[bytes, asyncio.Future[bytes]] = {}

    @property
    def retired(self) -> bool:
        return self._webhook.retired

    def known(self, value: bytes) -> bytes | None:
        found = self._known.get(value)
        if found is not None:
            self._known.move_to_end(value)
        return found

    async def serve(self, values: Sequence[bytes]) -> list[bytes]:
        made: dict[bytes, bytes] = {}
        missing: dict[bytes, Data] = {}
        waiting: dict[bytes, asyncio.Future[bytes]] = {}
        for value in values:
            found = self.known(value)
            if found is not None:
                made[value] = found
            elif value in self._coming:
                waiting[value] = self._coming[value]
            elif value not in missing:
                data = self._webhook.settled(decode(value))
                if data["apiVersion"] == self._version:
                    made[value] = encode(data)
                else:
                    missing[value] = data
        for batch in _batches(missing):
            futures = {value: asyncio.get_running_loop().create_future() for value in batch}
            self._coming |= futures
            task = asyncio.ensure_future(self._convert(batch, futures))
            task.add_done_callback(_check)
            # Others may wait for the same answer, so whoever goes away does not take the question back.
            made |= await asyncio.shield(task)
        for value, future in waiting.items():
            made[value] = await future
        return [made[value] for value in values]

    async def _convert(self, batch: dict[bytes, Data], futures: dict[bytes, asyncio.Future[bytes]]) -> dict[bytes, bytes]:
        """Ask for several at once; whoever wants one of them meanwhile waits for the same answer."""
        try:
            found = await self._webhook.convert(list(batch.values()), self._version)
        except BaseException as error:
            said = error if isinstance(error, Failure) else Failure(500, "", "the conversion was given up")
            _settle(futures, lambda future: future.set_exception(said))
            raise
        finally:
            for value, future in futures.items():
                if self._coming.get(value) is future:
                    del self._coming[value]
        made = {value: encode(data) for value, data in zip(batch, found, strict=True)}
        for value, served in made.items():
            self.remember(value, served)
            if not futures[value].done():
                futures[value].set_result(served)
        return made

    async def store(self, data: Data) -> ConvertedForm:
        wanted = self._webhook.stored_version
        if self._version == wanted:
            return ConvertedForm({**data, "apiVersion": wanted}, data)
        sent = {**data, "metadata": {key: value for key, value in data["metadata"].items() if key != "resourceVersion"}}
        (stored,) = await self._webhook.convert([sent], wanted)
        (served,) = await self._webhook.convert([self._webhook.settled(stored)], self._version)
        return ConvertedForm(stored, served)

    def remember(self, stored: bytes, served: bytes) -> None:
        before = self._known.pop(stored, None)
        self._size += len(served) - (len(before) if before is not None else 0)
        self._known[stored] = served
        while self._size > REMEMBERED_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._size -= len(oldest)


def _check(task: "asyncio.Future[Any]") -> None:
    """Perhaps nobody waits for it any more."""
    if not task.cancelled():
        task.exception()


def _settle(futures: Mapping[bytes, "asyncio.Future[bytes]"], say: Callable[["asyncio.Future[bytes]"], None]) -> None:
    for future in futures.values():
        if not future.done():
            say(future)
            # Perhaps nobody waits for it.
            future.exception()


def _batches(missing: dict[bytes, Data]) -> list[dict[bytes, Data]]:
    batches: list[dict[bytes, Data]] = []
    size = 0
    for value, data in missing.items():
        if not batches or len(batches[-1]) >= MOST_OBJECTS or size + len(value) > MOST_BYTES:
            batches.append({})
            size = 0
        batches[-1][value] = data
        size += len(value)
    return batches
