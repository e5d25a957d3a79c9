"""The console beside a cluster that is not Paddock's, from a recording of KubeVirt's own programs."""

from typing import Any

import pytest

from paddock.kubernetes.client.client import Client
from paddock.web.answers.rows import WebHostCheck
from paddock.web.session import WebHost
from tests import virtualtime
from tests.scenario.web.pages import Page
from tests.scenario.web.recordedcluster import FILE, SHOP, WEB, RecordedCluster, play

# It has to stay readable, and a difference of it, too.
LARGEST = 100_000


async def checked() -> list[WebHostCheck]:
    return [WebHostCheck(name="accelerator", state="good", text="KVM works", fix="")]


@pytest.fixture(scope="module")
def played() -> tuple[RecordedCluster, dict[str, Any]]:
    """Return the rows and answers that a page gets of the recording."""
    cluster = RecordedCluster.of_file()
    found: dict[str, Any] = {}

    async def inside() -> None:
        # A cluster of kind, say, listens on this host, too.
        async with Page(client=Client(cluster), about=WebHost(checks=checked)) as page:
            found.update(await play(page))

    virtualtime.run(inside())
    return cluster, found


def test_the_machines_of_the_cluster(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    _, found = played
    web, shop = found[WEB]["row"], found[SHOP]["row"]
    assert (web["status"], web["state"], web["node"], web["ips"]) == ("Running", "good", "node", ["10.0.2.2"])
    assert (shop["dialect"], shop["state"] != "good") == ("stakater", True)
    assert found[f"{WEB}/why"]["state"] == "good" and found[f"{WEB}/history"]["history"]
    assert any(each["object"] == "VirtualMachine/web" for each in found["kinds/events"]["events"])


def test_what_the_cluster_lacks_is_named(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    _, found = played
    me = found["me"]
    assert (me["own"], me["dialects"]) == (False, ["kubevirt", "stakater", "vitistack"])
    missing = {each["what"]: each["why"] for each in me["missing"]}
    assert missing.keys() == {"kubermatic", "virtrigaud", "providers", "history", "checks", "suspend", "usage"}
    assert missing["providers"] == "the server has none of the kinds: providers.infra.virtrigaud.io"
    assert "keeps no history" in found[f"{WEB}/usage"]["missing"]
    assert [each["name"] for each in found["host"]["nodes"]] == ["node"] and found["host"]["checks"] == []


def test_virt_api_answers_the_verbs(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    _, found = played
    assert found[f"{WEB}/actions/stop"] == {"text": "vm/web stopped: requested"}
    assert found[f"{WEB}/actions/pause"] == [400, "No virt-handler on node node found"]
    assert found[f"{WEB}/actions/suspend"] == [400, "cannot suspend vm/web"]
    actions = {each["verb"]: each for each in found[WEB]["actions"]}
    assert (actions["stop"]["allowed"], actions["suspend"]["allowed"]) == (True, False)
    assert "KubeVirt cannot suspend" in actions["suspend"]["reason"]


def test_a_screen_that_the_node_does_not_show_is_no_error(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    # A browser would log each.
    assert played[1]["screenshot"] == 204


def test_new_machines_are_of_kinds_that_are_there(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    _, found = played
    assert [each["result"] for each in found["apply kubevirt"]["objects"]] == ["created"]
    code, message = found["apply virtrigaud"]
    assert code == 400 and "the server has no kind Provider in infra.virtrigaud.io" in message


def test_one_watch_for_each_kind(played: tuple[RecordedCluster, dict[str, Any]]) -> None:
    cluster, _ = played
    assert "/apis/kubevirt.io/v1/virtualmachineinstances" in cluster.most
    assert set(cluster.most.values()) == {1}
    # The page of series of a kube-apiserver has megabytes.
    assert not any(each.startswith("GET /metrics") for each in cluster.asked)


def test_the_recording_is_small() -> None:
    assert FILE.stat().st_size < LARGEST
