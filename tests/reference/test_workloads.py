"""Kinds of the table are stored by Paddock as a real server stores them: defaults, status, rules and their words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.build import Binaries
from tests.reference.client import Api
from tests.reference.embedded import serving
from tests.reference.server import running

pytestmark = pytest.mark.reference
Data = dict[str, Any]
CASES: Data = json.loads((Path(__file__).parent / "workloads.json").read_text())
# What each server chooses for itself, and what admission adds that the real server runs without here.
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_ADMISSION = ("priority", "preemptionPolicy")


@pytest.fixture(scope="module")
def servers(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    folder = tmp_path_factory.mktemp("workloads")
    with running(binaries, folder) as real, serving(folder / "paddock") as ours:
        both = Api(real), Api(ours.access)
        yield both
        for api in both:
            api.close()


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize("name", CASES)
def test_both_servers_answer_alike(servers: tuple[Api, Api], name: str) -> None:
    case = CASES[name]
    real, ours = (_answer(api, case["path"], {"metadata": {"name": name}, **case["body"]}) for api in servers)
    assert ours == real


def _answer(api: Api, path: str, body: Data) -> Any:
    said = api.request("POST", path, body)
    if not said.ok:
        causes = (said.body.get("details") or {}).get("causes") or ()
        return said.status, sorted((each["field"], each["message"]) for each in causes)
    made = {**said.body, "metadata": {key: value for key, value in said.body["metadata"].items() if key not in _OWN}}
    if made["kind"] == "Pod":
        made["spec"] = {key: value for key, value in made["spec"].items() if key not in _ADMISSION}
    # A job names itself in labels.
    return json.loads(json.dumps(made).replace(said.body["metadata"]["uid"], "UID"))
