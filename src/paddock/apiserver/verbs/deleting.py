"""delete and deletecollection."""

import asyncio
from collections.abc import Sequence

import msgspec
import orjson

from paddock.apiserver.context import RequestContext, ServerParts
from paddock.apiserver.objects.requests import Deleted, DeleteOptions
from paddock.apiserver.representation import answer, form_of, list_head
from paddock.apiserver.verbs.options import delete_options, list_query
from paddock.apiserver.verbs.reading import list_meta, selected, stored_query
from paddock.edge.http import HttpResponse
from paddock.meta import failure
from paddock.store.contract import StoreKey

# Deletions at a time. They share the commits of the store; many more would hold up what other clients write.
_TOGETHER = 16


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
    gone: list[bytes] = []
    keys = [record.key for record in page.records]
    for start in range(0, len(keys), _TOGETHER):
        for deleted in await _delete_together(parts, call, keys[start : start + _TOGETHER], options):
            call.warnings.extend(deleted.warnings)
            gone.append(deleted.value)
    resource = call.resource
    encoder = parts.writer.encoder(resource)
    return answer(form, encoder.listed(list_head(resource.api_version, resource.list_kind, list_meta(page)), await encoder.prepare(gone)))


async def _delete_together(parts: ServerParts, call: RequestContext, keys: Sequence[StoreKey], options: DeleteOptions) -> list[Deleted]:
    """Delete objects at once; raise the first refusal. One that somebody else has deleted is left out."""
    deletions = (parts.writer.delete(call.resource, key.namespace, key.name, options) for key in keys)
    outcomes = await asyncio.gather(*deletions, return_exceptions=True)
    for each in outcomes:
        if isinstance(each, BaseException) and not (isinstance(each, failure.Failure) and each.code == 404):
            raise each
    return [each for each in outcomes if isinstance(each, Deleted)]
