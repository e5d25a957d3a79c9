import asyncio
from collections.abc import Sequence

import msgspec
import orjson

from paddock.kubernetes.meta import failure
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.requests import Deleted, DeleteOptions
from paddock.server.representation import answer, form_of, list_head
from paddock.server.store.contract import StoreKey
from paddock.server.verbs.options import delete_options, list_query
from paddock.server.verbs.reading import list_meta, selected, stored_query

# Deletions that begin in one turn of the loop. Waiting for each turn's commit would let everything that follows from the first ones, the
# ends of machines, go before the last ones.
_IN_A_TURN = 16
# Deletions that wait at the same time: for a commit of the store, or for a webhook.
_UNDER_WAY = 256


async def delete(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """One object goes, or is marked to go."""
    form = form_of(call.request)
    options = delete_options(call)
    deleted = await parts.writer.delete(call.resource, call.route.namespace, call.route.name, options)
    call.warnings.extend(deleted.warnings)
    if deleted.gone and not call.resource.strategy.returns_deleted():
        return answer(form, _success(call, deleted))
    if call.resource.conversion is None:
        return answer(form, parts.renderer(call.resource, form).one(deleted.value))
    try:
        value = await parts.served(call.resource, deleted.value)
    except failure.Failure:
        # The deletion has been decided; that the object cannot be shown in this version does not take it back.
        return answer(form, _success(call, deleted))
    return answer(form, parts.renderer(call.resource, form).one(value))


def _success(call: RequestContext, deleted: Deleted) -> bytes:
    about = {"name": call.route.name, "group": call.resource.group, "kind": call.resource.plural, "uid": deleted.uid}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in about.items() if value},
    }
    return orjson.dumps(status)


async def delete_collection(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """Every object that a selector names; each by itself."""
    form = form_of(call.request)
    options = delete_options(call)
    query = list_query(call)
    page = parts.reader.list(call.resource, stored_query(call.resource, query))
    if call.resource.conversion is not None:
        wanted = {record.key for record in selected(query, await parts.prepared(call.resource, page.records))}
        page = msgspec.structs.replace(page, records=tuple(record for record in page.records if record.key in wanted))
    deletions = await _delete_all(parts, call, [record.key for record in page.records], options)
    for deleted in deletions:
        call.warnings.extend(deleted.warnings)
    gone = [deleted.value for deleted in deletions]
    resource = call.resource
    encoder = parts.writer.encoder(resource)
    return answer(form, encoder.listed(list_head(resource.api_version, resource.list_kind, list_meta(page)), await encoder.prepare(gone)))


async def _delete_all(parts: ServerParts, call: RequestContext, keys: Sequence[StoreKey], options: DeleteOptions) -> list[Deleted]:
    """Delete objects at once; raise the first refusal, and begin no more after it. One that somebody else has deleted is left out."""
    window = asyncio.Semaphore(_UNDER_WAY)

    async def delete_one(key: StoreKey) -> Deleted | None:
        try:
            return await parts.writer.delete(call.resource, key.namespace, key.name, options)
        except failure.Failure as said:
            if said.code == 404:
                return None
            raise
        finally:
            window.release()

    tasks: list[asyncio.Task[Deleted | None]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for number, key in enumerate(keys, 1):
                await window.acquire()
                tasks.append(group.create_task(delete_one(key)))
                if number % _IN_A_TURN == 0:
                    await asyncio.sleep(0)
    except BaseExceptionGroup as refused:
        raise refused.exceptions[0] from None
    return [deleted for task in tasks if (deleted := task.result()) is not None]
