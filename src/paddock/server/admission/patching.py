"""Running the mutations of one policy on one write: each sees what the one before made."""

from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import patch
from paddock.kubernetes.meta.apply import fitting, values
from paddock.kubernetes.meta.apply.types import ATOMIC, KEYED, MAP, MergeType, of_schema, resolve
from paddock.kubernetes.schema.cel.values import Message
from paddock.server.admission import conditions
from paddock.server.admission.conditions import UndecidedConditions
from paddock.server.admission.expressions import CONDITIONS_LIMIT, POLICY_LIMIT, Activation, ExpressionFailed, Scope
from paddock.server.admission.stored import BadMutation, MutatingPolicy
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

_ROOT = "Object"


async def patched(
    policy: MutatingPolicy, attempt: Attempt, resource: ServedResource, admission: AdmissionContext, params: Data | None
) -> Data | None:
    """The object as the mutations leave it, in a version; None where the conditions do not hold. Raises `BadMutation`."""
    seen = {**await conditions.values(attempt, resource, admission), "params": params}
    scope = Scope(policy.param_kind is not None, known=tuple(name for name, _ in policy.variables), mutates=True)
    plain = Activation(seen, Scope(scope.params), limit=CONDITIONS_LIMIT)
    try:
        if policy.conditions and not conditions.decide(policy.conditions, plain):
            return None
    except UndecidedConditions as error:
        raise BadMutation(str(error)) from None
    made: Data = seen["object"]
    for kind, text in policy.mutations:
        activation = Activation({**seen, "object": made}, scope, policy.variables, POLICY_LIMIT)
        try:
            value = activation.value(text)
        except ExpressionFailed as error:
            raise BadMutation(str(error)) from None
        made = _applied(made, value, resource) if kind == "ApplyConfiguration" else _edited(made, value)
    return made


def _edited(made: Data, value: Any) -> Data:
    """An object after the operations of a JSON patch; one whose tests fail stays as it is."""
    if not isinstance(value, list) or not all(isinstance(each, Message) and each.name == "JSONPatch" for each in value):
        raise BadMutation("type mismatch: JSONPatchType.ConvertToNative expected to return list(JSONPatch)")
    operations = [{"op": "", "path": "", **_plain(each)} for each in value]
    for each in operations:
        if each["op"] in ("add", "replace", "test"):
            each.setdefault("value", None)
    try:
        result = patch.apply_json_patch(made, operations)
    except patch.TestFailed:
        return made
    except patch.BadPatch as error:
        raise BadMutation(f"JSON Patch: {error.what}") from None
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise BadMutation("JSON Patch: it leaves no object")
    return result


def _applied(made: Data, value: Any, resource: ServedResource) -> Data:
    """An object with a configuration merged into it, as apply merges."""
    if not isinstance(value, Message) or value.name.partition(".")[0] != _ROOT:
        raise BadMutation("type mismatch: must evaluate to Object")
    _check_names(value, _ROOT)
    config = {**_plain(value), "apiVersion": made["apiVersion"], "kind": made["kind"]}
    schema = resource.pipeline.schema
    wrong = "error applying patch: failed to convert patch object to typed object: "
    nulls = (f".{name}: expected map, got null" for name, each in config.items() if each is None)
    misfit = next(nulls, None) or next(fitting.misfits(schema, config), None)
    if misfit is not None:
        raise BadMutation(f"{wrong}{misfit}")
    root = of_schema(schema)
    atomic = next(_atomic(root, config, ""), None)
    if atomic is not None:
        raise BadMutation(f"error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomic}")
    try:
        merged: Data = values.merge(root, made, config)
    except values.Unmergeable as error:
        raise BadMutation(f"{wrong}{error.what}") from None
    return merged


def _check_names(value: Any, place: str) -> None:
    """The type of a message is its place: `Object.spec.containers` below `spec.containers`."""
    if isinstance(value, Message):
        if value.name != place:
            where = "which matches field name path from root Object type"
            raise BadMutation(f'type mismatch: unexpected type name "{value.name}", expected "{place}", {where}')
        for name, member in value.items():
            _check_names(member, f"{place}.{name}")
    elif isinstance(value, list):
        for entry in value:
            _check_names(entry, place)


def _plain(value: Any) -> Any:
    """JSON data of what an expression made."""
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    raise BadMutation(f"type mismatch: a value of type {type(value).__name__} is no JSON")


def _atomic(kind: MergeType, value: Any, place: str) -> Iterator[str]:
    """The places of a configuration that apply would replace as a whole."""
    kind = resolve(kind, value)
    if kind.kind == ATOMIC and isinstance(value, dict | list):
        yield place
    elif kind.kind == MAP and isinstance(value, dict):
        for name, member in value.items():
            yield from _atomic(kind.member(name), member, f"{place}.{name}")
    elif kind.kind == KEYED and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _atomic(kind.item or kind, entry, f"{place}[{index}]")
