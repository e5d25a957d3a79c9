"""VirtRigaud's own definitions and ours: the same fields, and the same documents taken, but for differences that are explained."""

import asyncio
import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files

import pytest
import yaml

from tests.kit.servers.apiharness import Harness
from tests.reference import crds, projects
from tests.reference.client import Api, Json
from tests.reference.crds import Crd
from tests.reference.test_projects import taken
from tests.unit.dialects.virtrigaud.kinds.test_corpus import BROKEN, CORPUS, OTHERS, broken, named

pytestmark = pytest.mark.reference

GROUP, THEIRS = "infra.virtrigaud.io", "upstream.virtrigaud.test"
# Parts of a Pod, which Kubernetes checks: ours keeps what is in them as it is.
OF_PODS = ("securityContext", "livenessProbe", "readinessProbe", "resources.claims")
# Fields beyond upstream's, with the reason.
OWN = {
    "providers status.reportedCapabilities.features": "the extension service",
    "vmimages status.providerStatus{}.reason": "why a Provider has no copy of the image",
    "vmmigrations status.disks": "a migration goes on at the disk where it stopped",
    "vmsets spec.template.metadata": "upstream's has no fields, so its server drops the labels that the selector needs (ruling 0.21)",
    "vmsets spec.volumeClaimTemplates[].metadata": "the same",
    "vmsets status.selector": "the scale subresource needs it",
}
# Documents that one of the two takes, by name and the field that was changed, with the reason.
DIFFERENCES = {
    "classes.yaml VMClass windows-11": "upstream's tpmVersion takes numbers in a text, so no version fits (ruling 0.20)",
    "documented.yaml VirtualMachine web-server": "a bare On is a boolean to clients; this server takes it (ruling 0.17)",
    "local.yaml Provider local": "upstream's pattern of images has no port",
    "providers.yaml Provider microvms": "upstream's pattern of images has no port",
    "sets.yaml VMSet web": "upstream's template has no labels (ruling 0.21)",
    "snapshots.yaml VMSnapshot database-nightly": "upstream's pattern of schedules has no names of days",
    "broken by-nfs spec.storage.nfs ['storage']": "upstream's controller refuses what its schema takes",
}


def flat(schema: Json, path: str = "") -> Iterator[str]:
    """The paths of all fields."""
    for name, each in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        yield inner
        yield from flat(each, inner)
    if "items" in schema:
        yield from flat(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from flat(schema["additionalProperties"], f"{path}{{}}")


def fields(document: Json) -> set[str]:
    """The fields of a definition's one version."""
    (version,) = document["spec"]["versions"]
    found = set(flat(version["schema"]["openAPIV3Schema"]))
    return {each for each in found if each.split(".")[0] not in ("apiVersion", "kind", "metadata")}


def test_the_fields_are_upstreams() -> None:
    ours = {each.name: fields(each.document) for each in crds.load() if each.spec["group"] == GROUP}
    theirs = {document["metadata"]["name"]: fields(document) for _, document in projects.of(projects.VIRTRIGAUD)}
    assert ours.keys() == theirs.keys() and len(theirs) == 10
    lacking = [f"{name} {each}" for name in theirs for each in theirs[name] - ours[name] if not any(f".{part}" in each for part in OF_PODS)]
    more = [f"{name.partition('.')[0]} {each}" for name in theirs for each in ours[name] - theirs[name]]
    assert sorted(lacking) == []
    assert [each for each in more if not each.startswith(tuple(OWN))] == []
    assert [each for each in OWN if not any(field.startswith(each) for field in more)] == [], "a reason that nothing needs"


def documents() -> Iterator[tuple[str, Json]]:
    """Documents that are right, and documents with one mistake, by a name for each."""
    for _, document in CORPUS:
        yield f"{document['kind']} {document['metadata']['name']}", document
    for file in sorted(files("paddock.dialects.virtrigaud").joinpath("examples").iterdir(), key=lambda each: each.name):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["apiVersion"].startswith(GROUP):
                yield f"{file.name} {document['kind']} {document['metadata']['name']}", document
    for name, change, field, _ in BROKEN:
        yield f"broken {name} {field} {sorted(change)}", broken(named(name), change)
    for document, change, field, _ in OTHERS:
        yield f"broken {document['kind']} {field}", broken(document, change)


@dataclass(frozen=True)
class Verdicts:
    """What both say of a document; an empty text takes it."""

    name: str
    theirs: str
    ours: str

    @property
    def differs(self) -> bool:
        return bool(self.theirs) != bool(self.ours)


def verdicts(api: Api, given: Iterable[tuple[str, Json]], group: str = THEIRS) -> list[Verdicts]:
    """Upstream's definitions at a kube-apiserver, in a group of their own, and Paddock, on each document, strictly."""
    installed = [Crd(origin, taken(document, group)) for origin, document in projects.of(projects.VIRTRIGAUD)]
    crds.install(api, installed)
    theirs = {each.names["kind"]: each.resource(each.served[0]) for each in installed}
    query = {"fieldValidation": "Strict", "dryRun": "All"}

    async def script() -> list[Verdicts]:
        found = []
        async with Harness() as server:
            for name, original in given:
                document = copy.deepcopy(original)
                namespace = document["metadata"].setdefault("namespace", "default")
                await server.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
                api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
                resource = theirs[document["kind"]]
                path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/{resource.plural}?fieldValidation=Strict&dryRun=All"
                ours = await server.post(path, document)
                other = api.request("POST", resource.path(namespace), {**document, "apiVersion": f"{group}/v1beta1"}, query=query)
                found.append(Verdicts(name, "" if other.ok else other.message, "" if ours.status == 201 else ours.data["message"]))
        return found

    return asyncio.run(script())


def test_the_same_documents_are_taken(api: Api) -> None:
    found = {
        each.name: f"upstream: {each.theirs or 'taken'}; ours: {each.ours or 'taken'}"
        for each in verdicts(api, documents())
        if each.differs
    }
    assert {name: text for name, text in found.items() if name not in DIFFERENCES} == {}
    assert DIFFERENCES.keys() - found.keys() == set(), "a reason that nothing needs"
