"""create, update, patch and apply, of objects and of their status and scale."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure, patch, strategic
from paddock.kubernetes.meta.apply import applying, fitting
from paddock.kubernetes.meta.apply.applying import ApplyRequest
from paddock.kubernetes.meta.apply.ownership import Manager
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Path
from paddock.server import bodies
from paddock.server.bodies import Body
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.drafts import aside
from paddock.server.objects.requests import Options, Proposal, Written
from paddock.server.representation import answer, form_of
from paddock.server.resources.resource import ServedResource
from paddock.server.verbs.options import write_options

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_STATUS_MEMBERS = ("apiVersion", "kind", "metadata", "status")
APPLY_PATCH = "application/apply-patch+yaml"


async def create(parts: ServerParts, call: RequestContext) -> HttpResponse:
    form = form_of(call.request)
    options = write_options(call, operation="Create")
    body = await aside(options, lambda: _object(call, options))
    written = await parts.writer.create(call.resource, call.route.namespace, body.data, options)
    return _answer(parts, call, form, written)


async def update(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """A whole new form of an object, or of its status."""
    form = form_of(call.request)
    options = write_options(call, operation="Update")
    body = await aside(options, lambda: _object(call, options))
    metadata = body.data.get("metadata")
    _check_name(call, metadata if isinstance(metadata, dict) else {})
    take = _taking(body.data, lambda: bodies.read_object(call.request).data)
    written = await _replace_or_create(parts, call, take, options)
    return _answer(parts, call, form, written)


async def patch_(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """A change of an object."""
    form = form_of(call.request)
    media = bodies.media_type(call.request)
    accepted = accepted_patches(call.resource)
    if media not in accepted:
        raise failure.unsupported_media_type(accepted)
    options = write_options(call, operation="Patch")
    if media == APPLY_PATCH:
        return _answer(parts, call, form, await _apply(parts, call, options))
    if "force" in call.request.query:
        about = failure.FailureTarget(group="meta.k8s.io", kind="PatchOptions")
        raise failure.invalid(about, [finding.forbidden(("force",), "may not be specified for non-apply patch", "patch/force")])
    change = await aside(options, lambda: _changer(call, media, options))
    written = await parts.writer.replace(call.resource, call.route.namespace, call.route.name, change, options)
    return _answer(parts, call, form, written)


def accepted_patches(resource: ServedResource) -> tuple[str, ...]:
    """The patch types of a resource."""
    if resource.strategic:
        return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def _answer(parts: ServerParts, call: RequestContext, form: Any, written: Written) -> HttpResponse:
    call.warnings.extend(written.warnings)
    call.made = written.name
    status = 201 if written.created else 200
    return answer(form, parts.renderer(call.resource, form).one(written.value), status)


def _object(call: RequestContext, options: Options) -> Body:
    """The object in a body."""
    body = bodies.read_object(call.request)
    _tell_repeated(call, body, options, strict=_strict_decoding)
    return body


def _strict_decoding(said: list[str], body: Body) -> failure.Failure:
    return failure.bad_request("strict decoding error: " + ", ".join(said))


def _tell_repeated(call: RequestContext, body: Body, options: Options, *, strict: Callable[[list[str], Body], failure.Failure]) -> None:
    said = [f'duplicate field "{field}"' for field in body.repeated]
    if said and options.field_validation == "Strict":
        # Unknown fields belong into the same answer; the object is decoded for their sake only.
        unknown = call.resource.pipeline.decode(copied(body.data)).unknown if isinstance(body.data, dict) else ()
        messages = [*zip(body.repeated, said, strict=True), *((each.field, f'unknown field "{each.field}"') for each in unknown)]
        places = {field: number for number, field in enumerate(_fields(body.data))}
        raise strict([text for _, text in sorted(messages, key=lambda each: places.get(each[0], len(places)))], body)
    if options.field_validation != "Ignore":
        call.warnings.extend(said)


def _fields(data: Any, path: Path = ()) -> Iterator[str]:
    """Yield every field of a body, in the order of the text."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield finding.format_path((*path, key))
        yield from _fields(value, (*path, key))


def _taking(data: Data, again: Callable[[], Data]) -> Callable[[], Data]:
    """Return what gives the data of a request to one attempt after the other. Decoding works in place, so each gets data of its own."""
    given = chain((data,), iter(again, None))
    return lambda: next(given)


async def _replace_or_create(parts: ServerParts, call: RequestContext, take: Callable[[], Data], options: Options) -> Written:
    try:
        return await parts.writer.replace(
            call.resource, call.route.namespace, call.route.name, lambda _: Proposal(take(), whole=True), options
        )
    except failure.Failure as said:
        if said.code != 404:
            raise
        raw = take()
        if not call.resource.create_on_update or options.subresource:
            # A body that cannot be read is a mistake whether or not the object is there.
            parts.writer.check_readable(call.resource, call.route.namespace, raw, options)
            raise
    if uid := raw["metadata"].get("uid"):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
        raise failure.conflict(call.resource.about(call.route.name), why)
    raw["metadata"].pop("resourceVersion", None)
    return await parts.writer.create(call.resource, call.route.namespace, raw, options)


def _changer(call: RequestContext, media: str, options: Options) -> Callable[[Data], Proposal]:
    """Return the function that makes the new form of an object. Bad patches fail here or when they meet the object."""
    if media == JSON_PATCH:
        operations = bodies.read_json(call.request.body).data
        if not isinstance(operations, list):
            raise failure.bad_request("the body of a JSON patch must be a list of operations")
        return lambda old: Proposal(_patched(call, lambda: _by_operations(old, operations)))
    body = bodies.read_json(call.request.body)
    if not isinstance(body.data, dict):
        raise failure.bad_request("the body of a merge patch must be an object")
    _tell_repeated(call, body, options, strict=lambda said, body: _strict_patch(call, said, body))
    if media == MERGE_PATCH:
        merged = call.resource.strategy.patchable(body.data)
        return lambda old: Proposal(_patched(call, lambda: patch.apply_merge_patch(old, merged)))
    return lambda old: Proposal(_patched(call, lambda: strategic.apply(old, body.data, call.resource.pipeline.schema)))


def _by_operations(old: Data, operations: list[Any]) -> Any:
    made = patch.apply_json_patch(old, operations)
    # Each operation is read, and together they can still nest an object deeper than any body may be.
    bodies.check_depth(made)
    return made


def _patched(call: RequestContext, change: Callable[[], Any]) -> Data:
    try:
        made = change()
    except patch.BadPatch as error:
        raise refusal(error, call.resource.about_kind(call.route.name)) from None
    if not isinstance(made, dict):
        raise failure.bad_request("the patch does not leave an object")
    data: Data = made
    return data


def refusal(error: patch.BadPatch, about: failure.FailureTarget) -> failure.Failure:
    """The answer to a patch that does not fit."""
    if isinstance(error, patch.PatchTooLarge):
        return failure.Failure(413, "RequestEntityTooLarge", str(error))
    return failure.Failure(422, "Invalid", str(error), about=about)


def _strict_patch(call: RequestContext, said: list[str], body: Body) -> failure.Failure:
    why = f"strict decoding error: {', '.join(said)}"
    wrong = finding.invalid(("patch",), orjson.dumps(body.data).decode(), why, "patch/strict")
    return failure.invalid(call.resource.about_kind(call.route.name), [wrong])


def _strict_apply(said: list[str], body: Body) -> failure.Failure:
    lines = [f'  line {line}: key "{key}" already set in map' for line, key in body.repeated_at]
    return failure.bad_request("error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n" + "\n".join(lines))


async def _apply(parts: ServerParts, call: RequestContext, options: Options) -> Written:
    """Server-side apply: the body is all that this manager wants."""
    if not call.request.parameter("fieldManager"):
        about = failure.FailureTarget(group="meta.k8s.io", kind="PatchOptions")
        raise failure.invalid(about, [finding.required(("fieldManager",), "patch/manager", "is required for apply patch")])
    take = _taking(await aside(options, lambda: _configuration(call, options)), lambda: _configuration(call, options))
    manager = Manager(options.manager, call.resource.api_version, options.subresource)

    asked = ApplyRequest(manager, call.resource.about(call.route.name), parts.clock.now(), call.request.flag("force"))

    def merge(old: Data) -> Proposal:
        return Proposal(applying.apply(old, take(), call.resource.pipeline.schema, asked), settled=True)

    try:
        return await parts.writer.replace(call.resource, call.route.namespace, call.route.name, merge, options)
    except failure.Failure as said:
        if said.code != 404 or options.subresource:
            raise
    config = take()
    if uid := config["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise failure.conflict(call.resource.about(call.route.name), why)
    config["metadata"].pop("resourceVersion", None)
    applied = msgspec.structs.replace(options, applies=True)
    return await parts.writer.create(call.resource, call.route.namespace, config, applied)


def _configuration(call: RequestContext, options: Options) -> Data:
    """The applied configuration in a request, as far as this path can set it."""
    body = bodies.read_yaml(call.request.body)
    if not isinstance(body.data, dict):
        raise failure.bad_request("the applied configuration must be an object")
    _tell_repeated(call, body, options, strict=_strict_apply)
    _check_applied(call, body.data)
    config = call.resource.strategy.appliable(body.data, call.warnings)
    _check_fit(call, config)
    _check_name(call, config["metadata"])
    return _kept_of(call, config, options.subresource)


def _kept_of(call: RequestContext, config: Data, subresource: str) -> Data:
    """Return the part of an apply that this path can set. Nobody owns, by this path, the parts that it leaves alone."""
    if subresource == "status":
        identity = {key: value for key, value in config["metadata"].items() if key in ("name", "namespace", "uid", "resourceVersion")}
        return {key: identity if key == "metadata" else value for key, value in config.items() if key in _STATUS_MEMBERS}
    if call.resource.status:
        return {key: value for key, value in config.items() if key != "status"}
    return config


def _check_applied(call: RequestContext, config: Data) -> None:
    for key, wanted in (("apiVersion", call.resource.api_version), ("kind", call.resource.kind)):
        if config.get(key) != wanted:
            raise failure.bad_request(f"Incorrect {key} specified in apply patch. Expected: {wanted}, got: {config.get(key, '')}")
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise failure.bad_request("metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise failure.bad_request("metadata.managedFields must be nil")


def _check_name(call: RequestContext, metadata: Data) -> None:
    name = metadata.get("name")
    if not name:
        raise failure.bad_request(f"the name of the object ({call.route.name} based on URL) was undeterminable: name must be provided")
    if name != call.route.name:
        raise failure.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.route.name})")


def _check_fit(call: RequestContext, config: Data) -> None:
    """An apply merges by types, so it cannot begin with a value of another type, nor with a field of which nothing is known."""
    found = list(fitting.misfits(call.resource.pipeline.schema, config))
    if not found:
        return
    gv = call.resource.api_version if call.resource.group else f"/{call.resource.version}"
    where = f"{config['metadata'].get('namespace', '')}/{call.route.name}; {gv}, Kind={call.resource.kind}"
    said = found[0] if len(found) == 1 else "errors:\n" + "".join(f"  {each}\n" for each in found)
    raise failure.bad_request(f"failed to create typed patch object ({where}): {said}")
