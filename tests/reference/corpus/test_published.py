"""The makers' own manifests, as `paddock validate` and the API server judge them."""

import asyncio
import copy
import json
from pathlib import Path

import pytest

from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema.kind import Kind
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness
from tests.reference import clones, projects
from tests.reference.corpus.published import Json, Source, is_theirs, sources
from tests.unit.cli.commands import paddock

pytestmark = pytest.mark.reference
SOURCES = sources()


@pytest.fixture(params=SOURCES, ids=lambda each: each.name)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """A source whose files are to be had."""
    found: Source = request.param
    try:
        found.text(next(iter(found.files)))
    except (clones.NoClone, projects.NotFetched) as missing:
        pytest.skip(f"needs published: {missing}")
    return found


def test_the_table_is_whole() -> None:
    found = {each.name: len(each.files) for each in SOURCES}
    assert found["kubevirt/kubevirt"] == 47 and found["kubevirt/containerized-data-importer"] == 26
    assert found["vitistack/kubevirt-operator"] >= 13 and found["vitistack/common"] == 7 and found["kubermatic/docs"] >= 5
    for each in SOURCES:
        assert all(
            key.partition(" ")[0].rpartition(":")[0] in each.files or key.partition(" ")[0] in each.files
            for key in each.refused | each.refused_by_server
        )


@pytest.mark.spec("vitistack", 93)
def test_validate_takes_them_or_says_why(source: Source, tmp_path: Path) -> None:
    wrong = {}
    for place, file, documents in source.documents(tmp_path):
        given = [each for each in documents if is_theirs(each)]
        expected = {index: source.refused.get(f"{place} {index}") for index, _ in enumerate(documents)}
        answer = paddock("validate", "-f", str(file), "-o", "json")
        said = json.loads(answer.out) if answer.out else []
        refusals = [each for each in _findings(said) if each["severity"] == "error" or each["rule"] == "input/foreign-kind"]
        errors = " ".join(f"{each['field']}: {each['message']}" for each in refusals)
        reasons = [each for each in expected.values() if each]
        if given and (bool(errors) is not bool(reasons) or any(each not in errors for each in reasons)):
            wrong[place] = f"said {errors or 'nothing'}; expected {reasons or 'to be taken'}"
    assert wrong == {}


def _findings(said: object) -> list[Json]:
    """Every finding in an answer of `paddock validate -o json`, whatever it is in."""
    if isinstance(said, dict):
        return [said] if "severity" in said and "message" in said else [found for each in said.values() for found in _findings(each)]
    return [found for each in said for found in _findings(each)] if isinstance(said, list) else []


@pytest.mark.spec("vitistack", 93)
@run_by(asyncio.run)
async def test_the_server_takes_them_or_says_why(source: Source, tmp_path: Path) -> None:
    """As a dry run, and then in earnest."""
    wrong: dict[str, str] = {}
    async with Harness() as server:
        for place, _, documents in source.documents(tmp_path):
            for index, document in enumerate(documents):
                if is_theirs(document):
                    problem = await _created(server, document, (source.refused | source.refused_by_server).get(f"{place} {index}"))
                    if problem:
                        wrong[f"{place} {index}"] = problem
    assert wrong == {}


async def _created(server: Harness, document: Json, reason: str | None) -> str:
    """Return what is not as expected of a document that is created; the same documents occur in several files."""
    kind = catalog.find(*_id(document))
    if not isinstance(kind, Kind):
        return "" if reason else "there is no such kind"
    metadata = document.setdefault("metadata", {})
    namespace = metadata.setdefault("namespace", "default") if kind.namespaced else ""
    if kind.namespaced and namespace != "default":
        await server.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    group, version = admission.split_api_version(document["apiVersion"])
    path = f"/apis/{group}/{version}/" + (f"namespaces/{namespace}/" if kind.namespaced else "") + kind.plural
    for query in ("?dryRun=All&fieldValidation=Strict", "?fieldValidation=Strict"):
        reply = await server.post(path + query, copy.deepcopy(document))
        said = str(reply.data.get("message", ""))
        if reason and (reply.status < 400 or reason.rpartition(": ")[2] not in said):
            return f"{query}: {reply.status} {said}; expected {reason}"
        if not reason and reply.status not in (201, 409):
            return f"{query}: {reply.status} {said}; expected to be taken"
    return ""


def _id(document: Json) -> tuple[str, str]:
    return admission.split_api_version(document["apiVersion"])[0], document["kind"]
