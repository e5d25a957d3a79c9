"""VirtRigaud's own examples: its definitions at a kube-apiserver and Paddock take the same, and what Paddock refuses says what to write."""

import asyncio
import copy
import re
import tomllib
from pathlib import Path

import pytest

from paddock.kubernetes import admission
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness
from tests.reference.client import Api
from tests.reference.test_virtrigaud import verdicts
from tests.reference.virtrigaud.published import documents

pytestmark = pytest.mark.reference

DIFFERENCES = Path(__file__).with_name("differences.toml")
# Beside the place and the mistake: what to write instead.
REMEDY = re.compile(
    r"; (write|leave|did you mean|metadata stands one level deeper)|^Required value|supported values: |must be (an?|addresses) "
)
PUBLISHED = 149


@pytest.mark.spec("virtrigaud", 112)
def test_the_examples_are_judged_as_upstream_judges_them(api: Api) -> None:
    published = list(documents())
    assert len(published) >= PUBLISHED and len(dict(published)) == len(published)
    found = {each.name: each for each in verdicts(api, published, "published.virtrigaud.test")}
    different = {name: f"upstream: {each.theirs or 'taken'}; ours: {each.ours or 'taken'}" for name, each in found.items() if each.differs}
    explained = {name for each in tomllib.loads(DIFFERENCES.read_text())["difference"] for name in each["documents"]}
    assert {name: text for name, text in different.items() if name not in explained} == {}
    assert explained - different.keys() == set(), "an explanation that nothing needs"
    # Nothing that upstream's definitions take is refused, and both verdicts occur.
    assert [name for name, each in found.items() if not each.theirs and each.ours] == []
    assert sum(not each.ours for each in found.values()) > 60 and sum(bool(each.ours) for each in found.values()) > 60


@pytest.mark.spec("virtrigaud", 112)
def test_a_refusal_says_what_to_write() -> None:
    mute = [
        f"{name}: {each.message}"
        for name, document in documents()
        for each in admission.admit(copy.deepcopy(document), AdmissionSettings()).findings
        if each.severity is Severity.ERROR and not REMEDY.search(each.message)
    ]
    assert mute == []


@pytest.mark.spec("virtrigaud", 15)
@run_by(asyncio.run)
async def test_a_network_without_a_reference_is_taken_with_a_warning() -> None:
    bare = [
        (name, each)
        for name, each in documents()
        if each["kind"] == "VirtualMachine"
        and admission.admit(copy.deepcopy(each), AdmissionSettings()).accepted
        and any("networkRef" not in card for card in each["spec"].get("networks") or ())
    ]
    assert len(bare) >= 6
    async with Harness() as server:
        for name, document in bare:
            namespace = document["metadata"].setdefault("namespace", "default")
            await server.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
            said = await server.post(f"/apis/infra.virtrigaud.io/v1beta1/namespaces/{namespace}/virtualmachines", document)
            assert said.status == 201 and any(".networkRef: none is given" in each for each in said.warnings), (name, said.data)
