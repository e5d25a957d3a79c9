"""CustomResourceDefinitions on a real server: installing them, and holding what the server serves against what they declare."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.reference.client import TABLE, Api, Json, Resource

DIRECTORY = Path(__file__).parents[2] / "api" / "crds"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

# A busy host needs long.
READY_SECONDS = 400.0
POLL_SECONDS = 0.1

AGE_ONLY = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


class Refused(Exception):
    """The server does not take a CRD; the complaints are the server's."""


class NotServed(Exception):
    """The server took a CRD and does not serve it in time."""


@dataclass(frozen=True)
class Crd:
    """One CRD as it stands in its file."""

    origin: str
    document: Json

    @property
    def name(self) -> str:
        """`plural.group`."""
        return str(self.document["metadata"]["name"])

    @property
    def kind(self) -> str:
        """`Kind.group`, as complaints name it."""
        return f"{self.names['kind']}.{self.spec['group']}"

    @property
    def spec(self) -> Json:
        """All that is declared."""
        spec: Json = self.document["spec"]
        return spec

    @property
    def names(self) -> Json:
        """The names it wants to be known by."""
        names: Json = self.spec["names"]
        return names

    @cached_property
    def served(self) -> tuple[Json, ...]:
        """The versions that are served."""
        return tuple(version for version in self.spec["versions"] if version["served"])

    def resource(self, version: Json) -> Resource:
        """Return the resource of one version."""
        namespaced = self.spec["scope"] == "Namespaced"
        return Resource(self.spec["group"], version["name"], self.names["plural"], self.names["kind"], namespaced)


def load(directory: Path = DIRECTORY) -> list[Crd]:
    """Every CRD below a directory, by file name; a file holds exactly one."""
    return [Crd(path.name, yaml.load(path.read_bytes(), yaml.CSafeLoader)) for path in sorted(directory.rglob("*.yaml"))]


def install(api: Api, crds: Iterable[Crd]) -> None:
    """Creates the CRDs and waits until every served version answers. All refusals come in one error."""
    crds = list(crds)
    refused = []
    for crd in crds:
        answer = api.request("POST", PATH, crd.document, query={"fieldValidation": "Strict"})
        if not answer.ok:
            refused.append(f"{crd.origin}: {answer.message}")
    if refused:
        raise Refused("\n".join(refused))
    deadline = time.monotonic() + READY_SECONDS
    waiting = crds
    while waiting := [crd for crd in waiting if not _answers(api, crd)]:
        if time.monotonic() > deadline:
            raise NotServed(", ".join(crd.name for crd in waiting))
        time.sleep(POLL_SECONDS)


def _answers(api: Api, crd: Crd) -> bool:
    """kubectl needs the OpenAPI document of a version before it applies strictly, so that counts too."""
    documents = api.request("GET", "/openapi/v3").body.get("paths", {})
    return all(
        api.request("GET", crd.resource(version).path()).ok and f"apis/{crd.spec['group']}/{version['name']}" in documents
        for version in crd.served
    )


def condition(stored: Json, name: str) -> Json:
    """A condition of a stored CRD; empty when it has none of that name."""
    conditions = stored.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def problems(api: Api, crd: Crd) -> list[str]:
    """Everything in which the server's view of a CRD differs from its file."""
    stored = api.request("GET", f"{PATH}/{crd.name}").body
    return [*_conditions(stored), *_names(crd, stored), *(p for v in crd.served for p in _version(api, crd, v))]


def _conditions(stored: Json) -> Iterator[str]:
    for name, wanted in (("Established", "True"), ("NamesAccepted", "True"), ("NonStructuralSchema", "")):
        seen = condition(stored, name)
        if seen.get("status", "") != wanted:
            yield f"condition {name} is {seen.get('status') or 'absent'}: {seen.get('message', '')}"
    # That somebody else's protected group was not approved for us is said in an annotation; without it a CRD is refused.
    conformant = condition(stored, "KubernetesAPIApprovalPolicyConformant")
    if conformant.get("status") == "False" and conformant.get("reason") != "UnapprovedAnnotation":
        yield f"the group is protected: {conformant.get('message')}"


def _names(crd: Crd, stored: Json) -> Iterator[str]:
    accepted = stored.get("status", {}).get("acceptedNames", {})
    for key, value in crd.names.items():
        if accepted.get(key) != value:
            yield f"names.{key}: the file says {value!r}, accepted is {accepted.get(key)!r}"


def _version(api: Api, crd: Crd, version: Json) -> Iterator[str]:
    resource = crd.resource(version)
    listed = api.request("GET", f"/apis/{resource.group}/{resource.version}").body.get("resources", [])
    entries = {entry["name"]: entry for entry in listed}
    yield from _discovery(crd, version, entries)
    table = api.request("GET", resource.path(), headers={"Accept": TABLE}).body
    yield from _columns(version, table.get("columnDefinitions", []))


def _discovery(crd: Crd, version: Json, entries: dict[str, Json]) -> Iterator[str]:
    plural = crd.names["plural"]
    main = entries.get(plural, {})
    for key, wanted in (
        ("kind", crd.names["kind"]),
        ("shortNames", crd.names.get("shortNames")),
        ("categories", crd.names.get("categories")),
        ("namespaced", crd.spec["scope"] == "Namespaced"),
    ):
        if main.get(key) != wanted:
            yield f"{version['name']}: discovery has {key} {main.get(key)!r}, the file {wanted!r}"
    declared = {f"{plural}/{name}" for name in version.get("subresources", {})}
    served = {name for name in entries if name.startswith(f"{plural}/")}
    if declared != served:
        yield f"{version['name']}: subresources declared {sorted(declared)}, served {sorted(served)}"


def _columns(version: Json, served: list[Json]) -> Iterator[str]:
    # Nothing declared is one column to the server: the age.
    declared = version.get("additionalPrinterColumns") or AGE_ONLY
    wanted: list[tuple[Any, ...]] = [("Name", "string", 0)]
    wanted += [(column["name"], column["type"], column.get("priority", 0)) for column in declared]
    seen = [(column["name"], column["type"], column["priority"]) for column in served]
    if seen != wanted:
        yield f"{version['name']}: columns declared {wanted}, served {seen}"
