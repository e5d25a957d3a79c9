"""OpenAPI v3 documents, one per group and version, as kubectl reads them (docs/spec/kube-api.md section 1.4).

The functions know resources, not our kinds: the API server describes the resources of users' CRDs with them, too.
"""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from paddock.kubernetes.schema.generate import crd, metaschemas
from paddock.kubernetes.schema.generate.metaschemas import embedded, ref, text
from paddock.kubernetes.schema.generate.structural import Schema
from paddock.kubernetes.schema.kind import Kind

_MERGE = "application/merge-patch+json"
_CUSTOM_PATCHES = ("application/json-patch+json", _MERGE, "application/apply-patch+yaml")
_BUILTIN_PATCHES = (*_CUSTOM_PATCHES, "application/strategic-merge-patch+json")
_BODIES = ("application/json", "application/yaml")
_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}


class OpenApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """One kind in one version, as it is served. `schema` is structural, as in a CRD."""

    group: str
    version: str
    kind: str
    plural: str
    schema: Schema
    list_kind: str
    namespaced: bool = True
    status: bool = False
    scale: bool = False
    # only created, never stored
    stored: bool = True
    # a kind of the server itself, which takes strategic merge patches
    builtin: bool = False


class OpenApiPath(msgspec.Struct, frozen=True):
    """A path of a group version that belongs to none of its kinds, such as a subresource of another group's objects."""

    group: str
    version: str
    # below the group version
    path: str
    verbs: tuple[str, ...]


def resources(kinds: Iterable[Kind]) -> Iterator[OpenApiResource]:
    """Our kinds, as they are served."""
    for kind in kinds:
        schema = crd.schema(kind)
        for version in kind.versions:
            yield OpenApiResource(
                group=kind.group,
                version=version.name,
                kind=kind.kind,
                plural=kind.plural,
                schema=schema,
                list_kind=f"{kind.kind}{Kind.LIST_SUFFIX}",
                namespaced=kind.namespaced,
                status=kind.status,
                scale=kind.scale is not None,
                stored=kind.stored,
                builtin=kind.builtin,
            )


def path_of(group: str, version: str) -> str:
    """The path of a group and version, as the index of documents names it."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def schema_name(group: str, version: str, kind: str) -> str:
    """`com.example.v1.Kind` for the group example.com."""
    return ".".join([*reversed((group or "core").split(".")), version, kind])


def document(served: Sequence[OpenApiResource], metadata: Schema, others: Sequence[OpenApiPath] = ()) -> dict[str, Any]:
    """The document of one group and version; `metadata` is the schema of ObjectMeta (`metaschemas.object_meta`)."""
    places = [*((each.group, each.version) for each in served), *((each.group, each.version) for each in others)]
    group, version = places[0]
    schemas = metaschemas.common(group, version, metadata, scale=any(resource.scale for resource in served)) if served else {}
    paths: dict[str, Any] = {f"/{path_of(group, version)}/{other.path}": _other(other) for other in others}
    for resource in served:
        schemas.update(_schemas(resource))
        paths.update(_paths(resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Paddock", "version": f"{group}/{version}" if group else version},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _schemas(resource: OpenApiResource) -> Iterator[tuple[str, Schema]]:
    name = schema_name(resource.group, resource.version, resource.kind)
    yield name, published(resource)
    if not resource.stored:
        return
    properties = {
        "apiVersion": text("Group and version of this list."),
        "kind": text("Kind of this list."),
        "metadata": embedded(metaschemas.LIST_META, "Metadata of the list."),
        "items": {"description": "The objects.", "type": "array", "items": ref(name)},
    }
    listed: Schema = {"description": f"A list of {resource.kind} objects.", "type": "object", "properties": properties}
    listed["required"] = ["items"]
    listed["x-kubernetes-group-version-kind"] = _gvk(resource, resource.list_kind)
    yield f"{name}List", listed


def published(resource: OpenApiResource) -> Schema:
    """The schema of a kind as clients see it: with the envelope, and for a kind of the server with its merge keys."""
    schema: Schema = copy.deepcopy(resource.schema)
    properties = {
        "apiVersion": text("APIVersion defines the group and the version of this object."),
        "kind": text("Kind of this object."),
        "metadata": embedded(metaschemas.OBJECT_META, "Standard object's metadata: name, labels, annotations."),
    }
    schema["properties"] = {**properties, **{k: v for k, v in schema.get("properties", {}).items() if k not in properties}}
    schema["x-kubernetes-group-version-kind"] = _gvk(resource, resource.kind)
    if resource.builtin:
        _add_merge_keys(schema)
    return schema


def _add_merge_keys(schema: Schema) -> None:
    """kubectl computes strategic merge patches for the server's own kinds from these."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys:
        schema["x-kubernetes-patch-merge-key"] = keys[0]
        schema["x-kubernetes-patch-strategy"] = "merge"
    for inner in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            _add_merge_keys(inner)


def _gvk(resource: OpenApiResource, kind: str) -> list[dict[str, str]]:
    return metaschemas.kinds((resource.group, resource.version, kind))


class _Call(NamedTuple):
    """One operation on a path. `body` and `answer` name schemas."""

    method: str
    action: str
    verb: str
    query: Sequence[Schema]
    answer: str
    body: str = ""


def _query(name: str, kind: str, description: str) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind}}


_PRETTY = _query("pretty", "string", "Whether the answer is indented.")
_DRY_RUN = _query("dryRun", "string", "All: do everything but store.")
_MANAGER = _query("fieldManager", "string", "Who makes this change.")
_VALIDATION = _query("fieldValidation", "string", "What becomes of unknown and repeated fields: Ignore, Warn or Strict.")
_FORCE = _query("force", "boolean", "Whether fields are taken from other managers; for apply only.")
_WRITE = (_DRY_RUN, _MANAGER, _VALIDATION)
_READ = (_query("resourceVersion", "string", "How new the answer has to be."),)
_SELECT = (
    _query("continue", "string", "Token of the next page."),
    _query("fieldSelector", "string", "Fields that select."),
    _query("labelSelector", "string", "Labels that select."),
    _query("limit", "integer", "The most objects in one answer."),
    *_READ,
    _query("resourceVersionMatch", "string", "How resourceVersion is meant."),
    _query("sendInitialEvents", "boolean", "Whether a watch begins with what there is."),
    _query("timeoutSeconds", "integer", "How long a watch lasts."),
)
_LIST = (
    _query("allowWatchBookmarks", "boolean", "Whether a watch may hold bookmarks."),
    *_SELECT,
    _query("watch", "boolean", "Whether changes follow."),
)
_DELETE = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "integer", "Seconds until the object goes."),
    _query("orphanDependents", "boolean", "No longer used: see propagationPolicy."),
    _query("propagationPolicy", "string", "What becomes of dependents."),
)


def _paths(resource: OpenApiResource) -> Iterator[tuple[str, Schema]]:
    name = schema_name(resource.group, resource.version, resource.kind)
    root = f"/{path_of(resource.group, resource.version)}"
    collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    create = _Call("post", "post", "create", _WRITE, name, name)
    if not resource.stored:
        yield collection, _item(resource, collection, [create])
        return
    some = f"{name}List"
    listed = _Call("get", "list", "list", _LIST, some)
    delete_all = _Call("delete", "deletecollection", "delete", (*_DELETE, *_SELECT), metaschemas.STATUS, metaschemas.DELETE_OPTIONS)
    yield collection, _item(resource, collection, [listed, create, delete_all])
    if resource.namespaced:
        yield f"{root}/{resource.plural}", _item(resource, f"{root}/{resource.plural}", [listed], "ForAllNamespaces")
    one = f"{collection}/{{name}}"
    delete = _Call("delete", "delete", "delete", _DELETE, metaschemas.STATUS, metaschemas.DELETE_OPTIONS)
    read, *writes = _reads_and_writes(name)
    yield one, _item(resource, one, [read, writes[0], delete, writes[1]])
    if resource.status:
        yield f"{one}/status", _item(resource, f"{one}/status", [read, *writes], "Status")
    if resource.scale:
        yield f"{one}/scale", _item(resource, f"{one}/scale", _reads_and_writes(metaschemas.SCALE), "Scale")


def _reads_and_writes(name: str) -> list[_Call]:
    return [
        _Call("get", "get", "read", _READ, name),
        _Call("put", "put", "replace", _WRITE, name, name),
        _Call("patch", "patch", "patch", (*_WRITE, _FORCE), name, metaschemas.PATCH),
    ]


def _item(resource: OpenApiResource, path: str, calls: Sequence[_Call], suffix: str = "") -> Schema:
    """One path with its operations."""
    operations = {call.method: _operation(resource, path, call, suffix) for call in calls}
    return {**operations, "parameters": [*_parameters(path), _PRETTY]}


def _parameters(path: str) -> list[Schema]:
    return [
        {"name": found, "in": "path", "required": True, "description": f"The {found}.", "schema": {"type": "string"}}
        for found in re.findall(r"\{(\w+)\}", path)
    ]


def _other(other: OpenApiPath) -> Schema:
    tag = _camel(other.group)
    operations: Schema = {}
    for verb in other.verbs:
        where = f"{tag}{other.version.capitalize()}{_camel(other.path)}"
        operations[_METHODS[verb]] = {
            "tags": [f"{tag[0].lower()}{tag[1:]}_{other.version}"],
            "operationId": f"{verb}{where}",
            "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        }
    return {**operations, "parameters": _parameters(other.path)}


def _operation(resource: OpenApiResource, path: str, call: _Call, suffix: str) -> Schema:
    where = "Collection" if call.action == "deletecollection" else ""
    where += "Namespaced" if "{namespace}" in path else ""
    tag = _camel(resource.group or "core")
    operation: Schema = {
        "tags": [f"{tag[0].lower()}{tag[1:]}_{resource.version}"],
        "description": _about(resource, call, suffix),
        "operationId": f"{call.verb}{tag}{resource.version.capitalize()}{where}{resource.kind}{suffix}",
    }
    if call.query:
        operation["parameters"] = list(call.query)
    if call.body:
        operation["requestBody"] = {"content": _content(_media(resource, call), call.body), "required": call.method != "delete"}
    operation["responses"] = _responses(call)
    operation["x-kubernetes-action"] = call.action
    operation["x-kubernetes-group-version-kind"] = _gvk_of(resource, call)
    return operation


def _about(resource: OpenApiResource, call: _Call, suffix: str) -> str:
    of = {"Status": "the status of ", "Scale": "the scale of "}.get(suffix, "")
    many = call.action in ("list", "deletecollection")
    verb = {"list": "List or watch", "deletecollection": "Delete", "post": "Create", "put": "Replace"}.get(
        call.action, call.action.capitalize()
    )
    objects = f"{resource.kind} objects" if many else f"one {resource.kind}"
    return f"{verb} {of}{objects}."


def _media(resource: OpenApiResource, call: _Call) -> Sequence[str]:
    if call.action != "patch":
        return _BODIES
    return _BUILTIN_PATCHES if resource.builtin else _CUSTOM_PATCHES


def _content(media: Sequence[str], name: str) -> Schema:
    return {each: {"schema": ref(name)} for each in media}


def _responses(call: _Call) -> Schema:
    words = {"200": "OK", **({"201": "Created"} if call.action in ("post", "put", "patch") else {})}
    if call.action in ("delete", "post"):
        words["202"] = "Accepted"
    answers: Schema = {code: {"description": word, "content": _content(_BODIES, call.answer)} for code, word in words.items()}
    return {**answers, "401": {"description": "Unauthorized"}}


def _gvk_of(resource: OpenApiResource, call: _Call) -> dict[str, str]:
    if call.answer == metaschemas.SCALE:
        return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _camel(text: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", text))
