"""Objects of a custom kind on a real server: what status, scale and tables do with one.

Every check creates the object it is given, looks, and deletes it; what it returns is a list of problems, empty when the
server does what the CRD's file promises.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.reference.client import TABLE, Answer, Api, Json
from tests.reference.crds import Crd

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class NotStored(Exception):
    """The server did not take an object that a check needs."""


@contextmanager
def stored(api: Api, thing: Json) -> Iterator[tuple[str, Json]]:
    """An object while it is stored: its path, and the server's form of it."""
    path = api.collection(thing)
    answer = api.request("POST", path, thing, query={"fieldValidation": "Strict"})
    if not answer.ok:
        raise NotStored(answer.message)
    one = f"{path}/{answer.body['metadata']['name']}"
    try:
        yield one, answer.body
    finally:
        api.request("DELETE", one)


def version_of(crd: Crd, thing: Json) -> Json:
    """The version an object is written in."""
    name = thing["apiVersion"].rpartition("/")[2]
    return next(version for version in crd.served if version["name"] == name)


def status_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """With a status subresource: only /status writes status, and it writes nothing else."""
    version = version_of(crd, thing)
    field, value = _sample_status(version)
    with stored(api, {**thing, "status": {field: value}}) as (path, first):
        if field in first.get("status", {}):
            return ["a status came in with the creation"]
        patch = {"status": {field: value}, "metadata": {"labels": {"from-status": "yes"}}}
        second = _patched(api, f"{path}/status", patch)
        problems = []
        if second.get("status", {}).get(field) != value:
            problems.append(f"/status did not store {field}={value!r}: {second.get('status')!r}")
        if "from-status" in second["metadata"].get("labels", {}):
            problems.append("/status changed a label")
        if second["metadata"]["generation"] != first["metadata"]["generation"]:
            problems.append("/status raised the generation")
        third = _patched(api, path, {"status": {field: None}})
        if third.get("status", {}).get(field) != value:
            problems.append("a patch of the object changed its status")
        return problems


def scale_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """With a scale subresource: it reads the declared path, and writing it changes the object there."""
    paths = version_of(crd, thing)["subresources"]["scale"]
    with stored(api, with_value(thing, paths["specReplicasPath"], 2)) as (path, _):
        before = api.request("GET", f"{path}/scale").body
        problems = []
        if before.get("kind") != "Scale" or before.get("spec") != {"replicas": 2}:
            problems.append(f"scale reads {before}")
        _patched(api, f"{path}/scale", {"spec": {"replicas": 5}})
        after = value_at(api.request("GET", path).body, paths["specReplicasPath"])
        if after != 5:
            problems.append(f"after scaling to 5 the object has {after!r} at {paths['specReplicasPath']}")
        return problems


def row_problems(api: Api, crd: Crd, thing: Json) -> list[str]:
    """The table shows what the object has at the plain paths of its columns."""
    columns = [column for column in version_of(crd, thing).get("additionalPrinterColumns", []) if column["type"] != "date"]
    names = [column["name"] for column in version_of(crd, thing).get("additionalPrinterColumns", [])]
    with stored(api, thing) as (path, now):
        rows = api.request("GET", path, headers={"Accept": TABLE}).body["rows"]
        cells = dict(zip(names, rows[0]["cells"][1:], strict=True))
        return [
            f"column {column['name']} shows {cells[column['name']]!r}, the object has {wanted!r}"
            for column in columns
            if _is_plain(column["jsonPath"])
            and (wanted := value_at(now, column["jsonPath"])) is not None
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
