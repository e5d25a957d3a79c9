"""Kinds of the table are stored by Paddock as a real server stores them: defaults, status, rules and their words."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reference.answers import Answers
from tests.reference.client import Api
from tests.reference.conftest import kept
from tests.reference.embedded import serving
from tests.reference.server import running

pytestmark = pytest.mark.reference
Data = dict[str, Any]
CASES: Data = json.loads((Path(__file__).parent / "workloads.json").read_text())
# What each server chooses for itself, and what admission adds that the real server runs without here.
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_ADMISSION = ("priority", "preemptionPolicy")


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Of a server of its own: webhooks and policies could refuse the objects of other tests."""
    with ExitStack() as stack:

        @cache
        def live() -> Api:
            access = stack.enter_context(running(request.getfixturevalue("binaries"), tmp_path_factory.mktemp("workloads")))
            return stack.enter_context(closing(Api(access)))

        yield from kept(request, live)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("ours") / "paddock") as server, closing(Api(server.access)) as api:
        yield api


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize("name", CASES)
def test_both_servers_answer_alike(answers: Answers, ours: Api, name: str) -> None:
    path, body = CASES[name]["path"], {"metadata": {"name": name}, **CASES[name]["body"]}
    assert _answer(ours, path, body) == answers.remember([path, body], lambda api: _answer(api, path, body))


def _answer(api: Api, path: str, body: Data) -> Any:
    said = api.request("POST", path, body)
    if not said.ok:
        causes = (said.body.get("details") or {}).get("causes") or ()
        return [said.status, *sorted([each["field"], each["message"]] for each in causes)]
    made = {**said.body, "metadata": {key: value for key, value in said.body["metadata"].items() if key not in _OWN}}
    if made["kind"] == "Pod":
        made["spec"] = {key: value for key, value in made["spec"].items() if key not in _ADMISSION}
    # A job names itself in labels.
    return json.loads(json.dumps(made).replace(said.body["metadata"]["uid"], "UID"))
