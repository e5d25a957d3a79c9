"""Objects of a custom kind on a real server: what status, scale and tables do with one.

Every check creates the object it is given, looks, and deletes it; what it returns is a list of problems, empty when the
server does what the CRD's file promises.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.reference.client import MERGE_PATCH, TABLE, Answer, Api, Json, Resource
from tests.reference.crds import AGE_ONLY, Crd
from tests.reference.verdict import Stored


class NotStored(Exception):
    """The server did not take an object that a check needs."""


@contextmanager
def stored(api: Api, resource: Resource, thing: Json) -> Iterator[Stored]:
    """An object while it is stored, in the server's form."""
    path = resource.collection_of(thing)
    answer = api.request("POST", path, thing, query={"fieldValidation": "Strict"})
    if not answer.ok:
        raise NotStored(answer.message)
    one = f"{path}/{answer.body['metadata']['name']}"
    try:
        yield Stored(one, answer.body)
    finally:
        api.request("DELETE", one)
        _let_go(api, one)


def _let_go(api: Api, path: str) -> None:
    """Do what the controllers of a cluster do for an object that goes; a server alone has none."""
    left = api.request("GET", path)
    if left.ok and left.body["kind"] == "Namespace":
        api.request("PUT", f"{path}/finalize", {**left.body, "spec": {"finalizers": []}})
    elif left.ok:
        api.request("PATCH", path, {"metadata": {"finalizers": None}}, headers=MERGE_PATCH)


def version_of(crd: Crd, thing: Json) -> Json:
    """The version an object is written in."""
    name = thing["apiVersion"].rpartition("/")[2]
    return next(version for version in crd.served if version["name"] == name)


def status_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """With a status subresource: only /status writes status, and it writes nothing else."""
    version = version_of(crd, thing)
    field, value = _sample_status(version)
    with stored(api, crd.resource(version), {**thing, "status": {field: value}}) as first:
        if field in first.thing.get("status", {}):
            return ["a status came in with the creation"]
        patch = {"status": {field: value}, "metadata": {"labels": {"from-status": "yes"}}}
        second = _patched(api, f"{first.path}/status", patch)
        problems = []
        if second.get("status", {}).get(field) != value:
            problems.append(f"/status did not store {field}={value!r}: {second.get('status')!r}")
        if "from-status" in second["metadata"].get("labels", {}):
            problems.append("/status changed a label")
        if second["metadata"]["generation"] != first.thing["metadata"]["generation"]:
            problems.append("/status raised the generation")
        third = _patched(api, first.path, {"status": {field: None}})
        if third.get("status", {}).get(field) != value:
            problems.append("a patch of the object changed its status")
        return problems


def scale_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """With a scale subresource: it reads the declared path, and writing it changes the object there."""
    version = version_of(crd, thing)
    paths = version["subresources"]["scale"]
    with stored(api, crd.resource(version), with_value(thing, paths["specReplicasPath"], 2)) as one:
        before = api.request("GET", f"{one.path}/scale").body
        problems = []
        if before.get("kind") != "Scale" or before.get("spec") != {"replicas": 2}:
            problems.append(f"scale reads {before}")
        _patched(api, f"{one.path}/scale", {"spec": {"replicas": 5}})
        after = value_at(api.request("GET", one.path).body, paths["specReplicasPath"])
        if after != 5:
            problems.append(f"after scaling to 5 the object has {after!r} at {paths['specReplicasPath']}")
        return problems


def row_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """The table shows what the object has at the plain paths of its columns."""
    version = version_of(crd, thing)
    declared = version.get("additionalPrinterColumns") or AGE_ONLY
    names = [column["name"] for column in declared]
    columns = [column for column in declared if column["type"] != "date"]
    with stored(api, crd.resource(version), thing) as one:
        rows = api.request("GET", one.path, headers={"Accept": TABLE}).body["rows"]
        cells = dict(zip(names, rows[0]["cells"][1:], strict=True))
        return [
            f"column {column['name']} shows {cells[column['name']]!r}, the object has {wanted!r}"
            for column in columns
            if _is_plain(column["jsonPath"])
            and (wanted := value_at(one.thing, column["jsonPath"])) is not None
            and str(cells[column["name"]]).lower() != str(wanted).lower()
        ]


def _is_plain(path: str) -> bool:
    return path.replace(".", "").replace("_", "").isalnum()


def _patched(api: Api, path: str, patch: Json) -> Json:
    answer: Answer = api.request("PATCH", path, patch, headers=MERGE_PATCH)
    if not answer.ok:
        raise NotStored(f"patch of {path}: {answer.message}")
    return answer.body


def value_at(thing: Json, path: str) -> Any:
    """The value at a plain path such as `.spec.replicas`; None when there is none."""
    value: Any = thing
    for part in path.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def with_value(thing: Json, path: str, value: Any) -> Json:
    """A copy with a value at a plain path."""
    made = copy.deepcopy(thing)
    *outer, last = path.strip(".").split(".")
    place = made
    for part in outer:
        place = place.setdefault(part, {})
    place[last] = value
    return made


def _sample_status(version: Json) -> tuple[str, Any]:
    """Some status field with a value that its schema takes."""
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    samples: dict[str, Any] = {"integer": 3, "array": [], "string": "x", "boolean": True}
    for name, field in schema.get("properties", {}).items():
        if "enum" in field:
            return name, field["enum"][-1]
        if field.get("type") in samples and not {"pattern", "format", "minItems", "x-kubernetes-validations"} & field.keys():
            return name, samples[field["type"]]
    raise NotStored(f"no status field to try in {sorted(schema.get('properties', {}))}")
