"""The metrics of the manager: the names and labels of docs/spec/virtrigaud.md 5.2, which move with what happens and only then."""

import asyncio
import re
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.breaker import BreakerState
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, Rigaud, image, machine, rigaud

LABELS = {
    "virtrigaud_build_info": ("component", "git_sha", "go_version", "version"),
    "virtrigaud_manager_reconcile_total": ("kind", "outcome"),
    "virtrigaud_manager_reconcile_duration_seconds": ("kind",),
    "virtrigaud_queue_depth": ("kind",),
    "virtrigaud_vm_operations_total": ("operation", "outcome", "provider", "provider_type"),
    "virtrigaud_provider_rpc_requests_total": ("code", "method", "provider_type"),
    "virtrigaud_provider_rpc_latency_seconds": ("method", "provider_type"),
    "virtrigaud_provider_tasks_inflight": ("provider", "provider_type"),
    "virtrigaud_errors_total": ("component", "reason"),
    "virtrigaud_ip_discovery_duration_seconds": ("provider_type",),
    "virtrigaud_circuit_breaker_state": ("provider", "provider_type"),
    "virtrigaud_circuit_breaker_failures_total": ("provider", "provider_type"),
}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def samples(life: Rigaud) -> dict[str, float]:
    """The samples of VirtRigaud, by their names with labels."""
    return read(life.metrics.text())


def read(text: str) -> dict[str, float]:
    found = (_SAMPLE.match(line) for line in text.splitlines() if line.startswith("virtrigaud_"))
    return {f"{each[1]}{{{each[2] or ''}}}": float(each[3]) for each in found if each is not None}


def total(found: dict[str, float], name: str, *labels: str) -> float:
    """The sum of the samples of a name that have these labels."""
    return sum(value for sample, value in found.items() if sample.startswith(f"{name}{{") and all(each in sample for each in labels))


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_every_metric_has_its_name_and_labels() -> None:
    async with rigaud(task_seconds=SecondsRange(20, 20)) as life:
        life.driver.breaker_state, life.driver.breaker_failures = BreakerState.HALF_OPEN, 7  # type: ignore[attr-defined]
        await life.make(machine("lost", classRef={"name": "absent"}), machine())
        await life.ready()
        await life.until(lambda: _address(life))
        found = samples(life)
        for name, labels in LABELS.items():
            given = [sample for sample in found if re.match(rf"{name}(_bucket|_sum|_count)?\{{", sample)]
            assert given, name
            assert {tuple(sorted(set(re.findall(r'(\w+)="', each)) - {"le"})) for each in given} == {labels}, name
        assert total(found, "virtrigaud_circuit_breaker_state", 'provider="default/lab"') == 1
        assert total(found, "virtrigaud_circuit_breaker_failures_total", 'provider_type="libvirt"') == 7


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_calls_are_counted_once_each() -> None:
    fault = RpcFault(rpc="Create", kind=ErrorKind.QUOTA_EXCEEDED)
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine())
        await life.ready()
        await asyncio.sleep(1000)
        found = samples(life)
        for rpc in ("Create", "Power", "Describe", "Validate"):
            assert total(found, "virtrigaud_provider_rpc_requests_total", f'method="{rpc}"') == life.driver.count(rpc)
            assert total(found, "virtrigaud_provider_rpc_latency_seconds_count", f'method="{rpc}"') == life.driver.count(rpc)
        operations = "virtrigaud_vm_operations_total"
        assert total(found, operations, 'operation="Create"', 'outcome="error"', 'provider="default/lab"') == 1
        assert total(found, operations, 'operation="Create"', 'outcome="success"', 'provider_type="libvirt"') == 1
        assert total(found, "virtrigaud_provider_rpc_requests_total", 'method="Create"', 'code="ResourceExhausted"') == 1
        assert total(found, "virtrigaud_errors_total", 'reason="provider-create"') == 1
        # Reconciling again counts reconciles alone.
        await life.merge("web", {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(5)
        again = samples(life)
        assert total(again, operations) == total(found, operations)
        assert total(again, "virtrigaud_errors_total") == total(found, "virtrigaud_errors_total")
        name = "virtrigaud_manager_reconcile_total"
        assert total(again, name, 'kind="VirtualMachine"') > total(found, name, 'kind="VirtualMachine"')


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_waiting_is_an_error_once() -> None:
    async with rigaud() as life:
        await life.make(machine(classRef={"name": "absent"}))
        await asyncio.sleep(2000)
        assert total(samples(life), "virtrigaud_errors_total", 'reason="deps-not-found"', 'component="manager"') == 1


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_tasks_are_in_flight_until_they_end() -> None:
    async with rigaud(task_seconds=SecondsRange(60, 60)) as life:
        await life.make(machine("web", powerState="Off"), machine("other", powerState="Off"))
        await asyncio.sleep(30)
        name = "virtrigaud_provider_tasks_inflight"
        assert total(samples(life), name, 'provider="default/lab"', 'provider_type="libvirt"') == 2
        await life.restart()
        await asyncio.sleep(10)
        assert total(samples(life), name) == 2, "a new process learns of them when it asks"
        await life.ready()
        await life.ready("other")
        assert total(samples(life), name) == 0


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_a_lost_task_is_not_in_flight() -> None:
    async with rigaud(task_seconds=SecondsRange(20, 20)) as life:
        await life.make(machine())
        await life.until(lambda: _task(life))
        life.driver.driver.restart()
        await life.ready()
        assert total(samples(life), "virtrigaud_provider_tasks_inflight") == 0


async def _task(life: Rigaud) -> bool:
    return bool((await life.status()).get("lastTaskRef"))


@pytest.mark.spec("virtrigaud", 105)
@timeless
async def test_the_time_until_an_address() -> None:
    async with rigaud(address_seconds=45.0) as life:
        await life.make(machine())
        await life.until(lambda: _address(life))
        found = samples(life)
        name = "virtrigaud_ip_discovery_duration_seconds"
        assert total(found, f"{name}_count", 'provider_type="libvirt"') == 1
        assert 44 <= total(found, f"{name}_sum") <= 60
        await asyncio.sleep(1000)
        assert total(samples(life), f"{name}_count") == 1


async def _address(life: Rigaud) -> bool:
    return bool((await life.status()).get("ips"))


@pytest.mark.spec("virtrigaud", 102)
@pytest.mark.parametrize("rpc", ["Create", "TaskStatus", "Validate", "ImagePrepare", "Describe", "Power"])
@timeless
async def test_a_provider_that_tells_secrets(rpc: str) -> None:
    """Whatever text it puts them into, no object and no event repeats them."""
    secret, password = "hunter2-is-the-password", "correct-horse-battery"
    async with rigaud(world=False) as life:

        async def tells(name: str, request: Any) -> m.WireMessage | None:
            if name != rpc:
                return None
            known = password if life.driver.count("Create") else "nothing yet"
            told = f"login failed for root:{secret}@host, guest has '{known}' in\nits data"
            match name:
                case "TaskStatus":
                    return m.TaskStatusResponse(done=True, error=told)
                case "Validate":
                    return m.ValidateResponse(ok=False, message=told)
                case "Describe":
                    raw = f'{{"debug": "{secret} {password}"}}'
                    return m.DescribeResponse(exists=True, power_state="On", console_url=f"https://a/{secret}", provider_raw_json=raw)
            raise ProviderError(ErrorKind.INTERNAL, f"{name} failed", why=told)

        life.driver.script = tells
        data = {"username": "root", "password": secret}
        user = f"#cloud-config\npassword: x\nchpasswd:\n  {password}\n"
        await life.make(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lab"}, "stringData": data},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "user"}, "stringData": {"userdata": user}},
        )
        await life.make(*WORLD)
        await life.make(
            image("cloud", {"libvirt": {"url": "https://images.example/cloud.qcow2"}}),
            machine(imageRef={"name": "cloud"}, userData={"cloudInit": {"secretRef": {"name": "user"}}}),
        )
        await asyncio.sleep(300)
        everything = ""
        for path in ("virtualmachines", "vmimages", "providers"):
            everything += str((await life.api.get(f"/apis/infra.virtrigaud.io/v1beta1/{path}")).data)
        everything += str((await life.api.get("/api/v1/namespaces/default/events")).data)
        assert secret not in everything
        assert password not in everything
        assert "<hidden>" in everything
