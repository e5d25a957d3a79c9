"""An instance in short says of claims and of the end what the whole one says."""

import orjson
import pytest

from paddock.kubevirt.plan.instance.brief import brief, claim_places

VOLUMES = [
    {"name": "a", "persistentVolumeClaim": {"claimName": "root"}},
    {"name": "b", "dataVolume": {"name": "data"}},
    {"name": "c", "ephemeral": {"persistentVolumeClaim": {"claimName": "base"}}},
    {"name": "d", "memoryDump": {"claimName": "dump"}},
    {"name": "e", "persistentVolumeClaim": {"claimName": "root"}},
    {"name": "f", "cloudInitNoCloud": {"userData": "#cloud-config"}},
]


def test_every_kind_of_claim_is_found_once_and_in_order() -> None:
    raw = orjson.dumps({"metadata": {"name": "web"}, "spec": {"volumes": VOLUMES, "domain": {"devices": {}}}})
    assert brief(raw).claims == ("root", "data", "base", "dump")
    assert claim_places("here", raw) == ["here/root", "here/data", "here/base", "here/dump"]


@pytest.mark.parametrize(("phase", "ended"), [(None, False), ("Running", False), ("Succeeded", True), ("Failed", True)])
def test_what_has_ended_uses_nothing(phase: str | None, ended: bool) -> None:
    assert brief(orjson.dumps({"spec": {"domain": {}}, "status": {"phase": phase}})).ended is ended
    assert not brief(b'{"spec":{}}').ended
