"""Whatever is lost, late or restarted, Stakater's machines end as in good weather (tests/scenario/fronts/trial.py)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from paddock.controllers.stakater import controller
from paddock.controllers.stakater.settings import Settings
from tests.scenario.fronts.stakater.stage import CATALOGUE, DISK, GROUP, KEY, SOURCE, Stage, front
from tests.scenario.fronts.trial import Dialect, calm, merge, moves_of, put, remove, stormy

_MACHINES = Stage.path()
_WEB = Stage.path("web")
_SOURCES = f"/apis/cdi.kubevirt.io/v1beta1/namespaces/{CATALOGUE}/datasources"
_READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}}
_CORE = "/api/v1/namespaces/default"
_VM = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
_KEYS = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team-keys"}, "data": {"key": "a2V5"}}


def _parameters(**given: object) -> dict[str, object]:
    return {"spec": {"parameters": given}}


# Changes whose end does not depend on what came before.
DIALECT = Dialect(
    wire=lambda program: controller.wire(program, Settings(bindings=frozenset({"l2bridge"}))),
    setting=(
        put("/api/v1/namespaces", {"metadata": {"name": CATALOGUE}}),
        put(_SOURCES, {**SOURCE, **_READY}),
        put(_MACHINES, front(additionalDisks=[DISK], service={"enabled": True}, cloudInit={"password": "a password"})),
    ),
    moves=(
        put(_MACHINES, front("third", sshPublicKey={"data": KEY})),
        put(_MACHINES, front("other", sshPublicKey={"secretName": "team-keys"})),
        put(f"{_CORE}/secrets", _KEYS),
        merge(_WEB, _parameters(runStrategy="Halted")),
        merge(_WEB, _parameters(runStrategy="Always")),
        merge(_WEB, _parameters(service={"enabled": False})),
        merge(_WEB, _parameters(service={"enabled": True, "port": 2222})),
        merge(_WEB, _parameters(cpu={"cores": 2}, additionalLabels={"tier": "web"})),
        merge(_WEB, _parameters(additionalLabels={"tier": None})),
        merge(_WEB, _parameters(cloudInit={"password": None})),
        merge(_WEB, _parameters(networks=[{"name": "default", "bindingName": "passt"}])),
        merge(_VM, {"spec": {"runStrategy": "Halted"}}),
        remove(f"{_CORE}/services/web-lb"),
        remove(f"{_CORE}/secrets/web-cloudinit"),
        remove(_VM),
        remove(_WEB),
    ),
    kinds=(f"{GROUP}/virtualmachines",),
)


def _end(found: Mapping[str, Any]) -> dict[str, Any]:
    """What stays: an instance is as its machine was when it started, and its serial number follows the machine's identity."""
    end: dict[str, Any] = {}
    for name, each in found.items():
        if "/virtualmachineinstances " in name:
            end[name] = None
        elif "/kubevirt.io/v1/virtualmachines " in name:
            firmware = each["spec"]["template"]["spec"]["domain"]["firmware"]
            plain = {key: value for key, value in firmware.items() if key not in ("uuid", "serial")}
            end[name] = {**each, "spec": to_json(each["spec"]).replace(to_json(firmware), to_json(plain))}
        else:
            end[name] = each
    return end


def to_json(value: Any) -> str:
    """The same text for the same value."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("seed", range(24))
def test_the_end_of_a_storm_is_that_of_good_weather(seed: int) -> None:
    moves = moves_of(DIALECT, seed)
    assert "/apis/kubevirt.io/v1/virtualmachines default/web" in calm(DIALECT, ())
    assert _end(stormy(DIALECT, moves, seed)) == _end(calm(DIALECT, moves))
