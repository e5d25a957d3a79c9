"""The scale subresource: the number of replicas of an object as a kind of its own (docs/spec/kube-api.md section 2.6)."""

from typing import Any

import orjson

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure, fieldpath, patch, selectors
from paddock.kubernetes.meta.ages import age
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.kind import Scale
from paddock.server import bodies
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Proposal
from paddock.server.representation import RepresentationForm, answer, form_of
from paddock.server.verbs.options import write_options
from paddock.server.verbs.writing import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, refusal

_KIND = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
_COLUMNS = tuple(
    {"name": name, "type": kind, "format": form, "description": text, "priority": 0}
    for name, kind, form, text in (
        ("Name", "string", "name", "Name of the object."),
        ("Desired", "integer", "", "How many there should be."),
        ("Available", "integer", "", "How many there are."),
        ("Age", "string", "", "Time since it was created."),
    )
)
_ABOUT = failure.FailureTarget(group="autoscaling", kind="Scale")


async def get(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """The scale of an object."""
    form = form_of(call.request, transforms=("Table",))
    record = parts.reader.get(call.resource, call.route.namespace, call.route.name)
    data, paths = decode(await parts.served(call.resource, record.value)), _paths(call)
    if not call.resource.declared and fieldpath.at(data, paths.replicas) is None:
        # Whoever scales could not tell zero from nothing.
        raise failure.internal(f'the spec replicas field "{paths.replicas}" does not exist')
    return answer(form, orjson.dumps(_shown(form, _scale(call, data), parts.clock.seconds())))


def _shown(form: RepresentationForm, scale: Data, now: float) -> Data:
    """A scale, or the table of it."""
    if form.transform != "Table":
        return scale
    begin = {"kind": "Table", "apiVersion": f"meta.k8s.io/{form.version}"}
    meta, shown = scale["metadata"], {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.version}"}
    row: Data = {
        "cells": [meta["name"], scale["spec"].get("replicas", 0), scale["status"]["replicas"], age(meta["creationTimestamp"], now)]
    }
    if form.include != "None":
        row["object"] = scale if form.include == "Object" else {**shown, "metadata": meta}
    revision = {"resourceVersion": meta.get("resourceVersion", "")}
    return {**begin, "metadata": revision, "columnDefinitions": [*_COLUMNS], "rows": [row]}


async def update(parts: ServerParts, call: RequestContext) -> HttpResponse:
    wanted = bodies.read_object(call.request).data
    return await _set(parts, call, lambda _: wanted)


async def patch_(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """A change of the scale."""
    media = bodies.media_type(call.request)
    if media == JSON_PATCH:
        operations = bodies.read_json(call.request.body).data
        if not isinstance(operations, list):
            raise failure.bad_request("the body of a JSON patch must be a list of operations")
        return await _set(parts, call, lambda scale: patch.apply_json_patch(scale, operations))
    if media in (MERGE_PATCH, STRATEGIC_PATCH):
        change = bodies.read_json(call.request.body).data
        return await _set(parts, call, lambda scale: patch.apply_merge_patch(scale, change))
    if media == APPLY_PATCH:
        change = bodies.read_yaml(call.request.body).data
        return await _set(parts, call, lambda scale: patch.apply_merge_patch(scale, change))
    raise failure.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))


def _paths(call: RequestContext) -> Scale:
    """Return the fields that the scale of an object is made of; kinds without any have no such path."""
    if call.resource.scale is None:
        raise failure.no_such_path()
    return call.resource.scale


def _scale(call: RequestContext, data: Data) -> Data:
    paths, meta = _paths(call), data["metadata"]
    status: Data = {"replicas": fieldpath.at(data, paths.status_replicas) or 0}
    selector = fieldpath.at(data, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = _selector_text(selector)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = fieldpath.at(data, paths.replicas)
    spec = {"replicas": replicas} if replicas else {}
    return {**_KIND, "metadata": {key: meta[key] for key in kept if key in meta}, "spec": spec, "status": status}


def _selector_text(selector: Any) -> str:
    """A selector as text. Built-in kinds have a selector of labels, or a map of them, where others have the text itself."""
    if isinstance(selector, str):
        return selector
    is_map = not {"matchLabels", "matchExpressions"} & set(selector)
    return selectors.text(selectors.read({"matchLabels": selector} if is_map else selector))


async def _set(parts: ServerParts, call: RequestContext, change: Any) -> HttpResponse:
    form = form_of(call.request, transforms=())
    options = write_options(call, operation="Patch" if call.request.method == "PATCH" else "Update")
    paths = _paths(call)

    def compute(old: Data) -> Proposal:
        try:
            wanted = change(_scale(call, old))
        except patch.BadPatch as error:
            raise refusal(error, _ABOUT) from None
        _check(call, wanted)
        new = copied(old)
        revision = (wanted.get("metadata") or {}).get("resourceVersion")
        new["metadata"]["resourceVersion"] = revision or old["metadata"].get("resourceVersion")
        _put(new, paths.replicas, wanted["spec"]["replicas"])
        return Proposal(new)

    written = await parts.writer.replace(call.resource, call.route.namespace, call.route.name, compute, options)
    return answer(form, orjson.dumps(_scale(call, decode(written.value))))


def _check(call: RequestContext, wanted: Any) -> None:
    if (
        not isinstance(wanted, dict)
        or wanted.get("kind", "Scale") != "Scale"
        or wanted.get("apiVersion", _KIND["apiVersion"]) != _KIND["apiVersion"]
    ):
        raise failure.bad_request("the body must be a Scale of autoscaling/v1")
    spec, meta = wanted.get("spec") or {}, wanted.get("metadata") or {}
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        raise failure.bad_request("metadata and spec of a Scale must be objects")
    replicas = spec.get("replicas", 0)
    wanted["spec"] = {**spec, "replicas": replicas}
    if type(replicas) is not int or replicas < 0:
        wrong = finding.invalid(("spec", "replicas"), replicas, "must be greater than or equal to 0", "scale/replicas")
        raise failure.invalid(failure.FailureTarget(name=call.route.name, group="autoscaling", kind="Scale"), [wrong])
    name = meta.get("name", call.route.name)
    if name != call.route.name:
        raise failure.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.route.name})")


def _put(data: Data, path: str, value: Any) -> None:
    *before, last = path.strip(".").split(".")
    for part in before:
        data = data.setdefault(part, {})
    data[last] = value
