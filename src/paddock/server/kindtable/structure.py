"""The structural schema of a kind of the table: what apply, strategic merge patches and the documents for clients read."""

from functools import cache

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.apply.types import MergeSchema
from paddock.server.kindtable import table
from paddock.server.kindtable.table import MessageField

_EITHER: Data = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_SCALARS: dict[str, Data] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": _EITHER,
    "IntOrString": _EITHER,
    "Strings": {"type": "array", "items": {"type": "string"}},
}
_OPEN: Data = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def schema(name: str, group: str, version: str, kind: str) -> MergeSchema:
    """The schema of a kind whose message is `name`."""
    made = dict(_message(name))
    own = {key: value for key, value in made["properties"].items() if key not in ("apiVersion", "kind")}
    made["properties"] = own | {"metadata": {"type": "object"}}
    # Says to a patch that the metadata is that of an object.
    made["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": kind}]
    return MergeSchema(made)


@cache
def _message(name: str) -> Data:
    found = table.message(name)
    made: Data = {"type": "object", "properties": {field.name: _field(field) for field in found.fields.values()}}
    required = [field.name for field in found.fields.values() if field.required]
    if required:
        made["required"] = required
    if found.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    return made


def _field(field: MessageField) -> Data:
    made: Data
    one = dict(_message(field.type)) if field.is_message else dict(_SCALARS.get(field.type, _OPEN))
    if field.enum:
        one["enum"] = list(field.enum)
    if field.repeated:
        made = {"type": "array", "items": one}
    elif field.mapped:
        made = {"type": "object", "additionalProperties": one}
    else:
        made = one
        if field.is_message and field.always:
            made["x-paddock-present"] = True
    if field.list_type:
        made["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        made["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    if field.patch_strategy:
        made["x-kubernetes-patch-strategy"] = field.patch_strategy
    if field.patch_key:
        made["x-kubernetes-patch-merge-key"] = field.patch_key
    if field.default:
        made["default"] = field.default
    return made
