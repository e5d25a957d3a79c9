"""Upstream's format of conformance specs, carried out for real: on a whole host in virtual time, with a Provider of type qemu."""

from collections.abc import Callable, Coroutine
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.app.commands.provider_conformance import code
from paddock.app.provider import casesteps
from paddock.contract.conformance.results import SuiteResult
from paddock.dialects.virtrigaud.plan.cases import document
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import FakeHost

IMAGE = "http://images.example/cloud.qcow2"
BASIC = (files("paddock.app.provider") / "cases" / "basic.yaml").read_text()
Data = dict[str, Any]


def basic() -> list[Data]:
    return list(yaml.safe_load(BASIC.replace("${image}", IMAGE)))


def judged(tmp_path: Path, cases: list[Data], prepare: Callable[[FakeHost], Coroutine[Any, Any, None]] | None = None) -> SuiteResult:
    """Run cases on a host, and see that nothing is left of them."""
    found: list[SuiteResult] = []

    async def script() -> None:
        async with FakeHost(tmp_path) as host:
            host.engine.images.offer(IMAGE)
            if prepare is not None:
                await prepare(host)
            read = document.read(yaml.safe_dump(cases), {})
            found.append(await casesteps.judge(host.api.client(), "default", read))
            for plural in ("virtualmachines", "vmclasses", "vmimages", "providers"):
                reply = await host.api.get(f"/apis/infra.virtrigaud.io/v1beta1/namespaces/default/{plural}")
                assert [each["metadata"]["name"] for each in reply.data["items"]] == [], plural

    virtualtime.run(script())
    return found[0]


@pytest.mark.spec("virtrigaud", 109)
def test_both_basic_cases_pass(tmp_path: Path) -> None:
    result = judged(tmp_path, basic())
    assert [(each.name, each.status, each.reason) for each in result.results] == [
        ("vm-create-delete", "passed", ""),
        ("vm-power-cycle", "passed", ""),
    ]
    assert all(each.seconds > 10 for each in result.results) and result.leftovers == () and code(result) == 0


def step(cases: list[Data], name: str) -> Data:
    (found,) = (each for each in cases[0]["steps"] if each["name"] == name)
    return dict(found)


def changed(name: str, **members: Any) -> list[Data]:
    """The first case, with a step that is another one."""
    cases = basic()[:1]
    cases[0]["steps"] = [{**each, **members} if each["name"] == name else each for each in cases[0]["steps"]]
    return cases


@pytest.mark.spec("virtrigaud", 109)
@pytest.mark.parametrize(
    ("cases", "says"),
    [
        (
            changed("validate-vm-running", validate=[{"path": ".status.powerState", "operator": "eq", "value": "Off"}]),
            ".status.powerState is 'On', not eq 'Off'",
        ),
        (changed("wait-vm-ready", waitFor={"condition": "Stopped", "timeout": "2m"}), "is not Stopped after 120 s: phase Running"),
        (changed("delete-vm", type="validate", validate=[{"path": ".spec.tags", "operator": "exists"}]), ".spec.tags is absent"),
        (
            changed(
                "create-vmclass",
                resource={
                    "apiVersion": "infra.virtrigaud.io/v1beta1",
                    "kind": "VMClass",
                    "metadata": {"name": "verify-class"},
                    "spec": {"cpu": 0, "memory": "1Gi"},
                },
            ),
            "spec.cpu",
        ),
        (changed("wait-vm-deleted", waitFor={"condition": "Running", "timeout": "20s"}), "is not Running after 20 s: it is not there"),
    ],
    ids=["value", "state", "absent", "refused", "gone"],
)
def test_a_case_fails_for_real_and_is_cleaned_up(tmp_path: Path, cases: list[Data], says: str) -> None:
    result = judged(tmp_path, cases)
    (case,) = result.results
    assert case.status == "failed" and says in case.reason and result.leftovers == ()
    assert code(result) == 1


@pytest.mark.spec("virtrigaud", 109)
@run_by(virtualtime.run)
async def test_what_stays_is_reported(tmp_path: Path) -> None:
    cases = basic()[:1]
    steps = cases[0]["steps"]
    for each in steps:
        if each["name"] == "create-vmclass":
            each["resource"]["metadata"]["finalizers"] = ["example.com/kept"]
    async with FakeHost(tmp_path) as host:
        host.engine.images.offer(IMAGE)
        result = await casesteps.judge(host.api.client(), "default", document.read(yaml.safe_dump(cases), {}))
        assert [each.status for each in result.results] == ["passed"]
        assert result.leftovers == ("VMClass default/verify-class",) and code(result) == 1


@pytest.mark.spec("virtrigaud", 109)
@run_by(virtualtime.run)
async def test_what_the_provider_lacks_is_left_out_and_nothing_run_is_no_success(tmp_path: Path) -> None:
    async def prepare(host: FakeHost) -> None:
        provider = step(basic(), "create-provider")["resource"]
        made = await host.api.post("/apis/infra.virtrigaud.io/v1beta1/namespaces/default/providers", provider)
        assert made.status == 201
        path = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/providers/verify-provider"
        reply = await host.api.merge(f"{path}/status", {"status": {"reportedCapabilities": {"supportsSnapshots": False}}})
        assert reply.status == 200

    found: list[SuiteResult] = []
    async with FakeHost(tmp_path) as host:
        await prepare(host)
        cases = basic()[:1]
        cases[0]["requiredCapabilities"] = ["vm-create", "vm-snapshot"]
        found.append(await casesteps.judge(host.api.client(), "default", document.read(yaml.safe_dump(cases), {})))
    (case,) = found[0].results
    assert (case.status, code(found[0])) == ("skipped", 2) and "vm-snapshot" in case.reason
    assert code(SuiteResult()) == 2
