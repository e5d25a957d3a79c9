"""`paddock plan` and `--dry-run` name what a manifest takes of quotas."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.cli import servers
from paddock.cli.commands import apply, plan
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.documents.inputobjects import gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.coroutines import run_by
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import Answer, paddock
from tests.virtualtime import Clock

MACHINE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: default}
spec:
  runStrategy: Always
  template: {spec: {domain: {cpu: {sockets: 2}, memory: {guest: 1Gi}, devices: {}}}}
"""
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: tenant, namespace: default}
spec: {hard: {requests.cpu/vmi: "3", requests.memory/vmi: 8Gi}}
status: {used: {requests.cpu/vmi: "2", requests.memory/vmi: 1Gi}}
"""
WORDS = "exceeded quota: tenant, requested: requests.cpu/vmi=2, used: requests.cpu/vmi=2, limited: requests.cpu/vmi=3"
OUTLOOK = (
    "quota default/tenant: requests.cpu/vmi: used 2, adds 2, hard 3: does not fit",
    "quota default/tenant: requests.memory/vmi: used 1Gi, adds 1Gi, hard 8Gi: fits",
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("machine.yaml", MACHINE), ("quota.yaml", QUOTA)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "machine.yaml"), str(tmp_path / "quota.yaml")


@pytest.mark.spec("kubevirt", 255)
def test_manifests_alone_tell_with_the_quota_among_them(files: tuple[str, str]) -> None:
    machine, quota = files
    answer = paddock("plan", "-f", machine, "--against", quota)
    assert answer.code == FINDINGS
    lines = answer.out.splitlines()
    assert f"{machine}:2:1: waits: VirtualMachine/web: {WORDS}" in lines
    assert lines[-2:] == list(OUTLOOK)
    assert "1 waits" in answer.err
    data = json.loads(paddock("plan", "-f", machine, "--against", quota, "-o", "json").out)
    assert [each["fits"] for each in data["quotas"]] == [False, True]
    running = paddock("plan", "-f", machine, "--against", machine, quota)
    assert (running.code, "quota default" in running.out) == (GOOD, False), "a machine that runs already adds nothing"


@pytest.mark.spec("kubevirt", 255)
def test_a_pool_in_manifests_adds_its_new_machines(tmp_path: Path, files: tuple[str, str]) -> None:
    text = """
apiVersion: pool.kubevirt.io/v1beta1
kind: VirtualMachinePool
metadata: {name: pool, namespace: default}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: pool}}
  virtualMachineTemplate:
    metadata: {labels: {app: pool}}
    spec:
      runStrategy: Always
      template: {spec: {domain: {memory: {guest: 1Gi}, devices: {}}}}
"""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(text.replace("REPLICAS", "2"))
    new.write_text(text.replace("REPLICAS", "5"))
    answer = paddock("plan", "-f", str(new), "--against", str(old), files[1])
    assert "quota default/tenant: requests.cpu/vmi: used 2, adds 3, hard 3: does not fit" in answer.out
    assert "waits: VirtualMachinePool/pool: 2 of its objects: exceeded quota: tenant" in answer.out


def test_manifests_without_a_quota_say_nothing_of_it(files: tuple[str, str]) -> None:
    assert "quota" not in paddock("plan", "-f", files[0], "--against", files[0]).out


@pytest.mark.spec("kubevirt", 255)
@run_by(asyncio.run)
async def test_plan_and_dry_run_ask_the_server(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]) -> None:
    async with Harness() as api, inside(api) as client:
        session = ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]

        @asynccontextmanager
        async def connected(*_: Any, **__: Any) -> AsyncIterator[ServerSession]:
            yield session

        monkeypatch.setattr(servers, "connected", connected)
        hard = {"requests.cpu/vmi": "1"}
        quotas = "/api/v1/namespaces/default/resourcequotas"
        assert (await api.post(quotas, {"metadata": {"name": "tenant"}, "spec": {"hard": hard}})).status == 201
        words = "exceeded quota: tenant, requested: requests.cpu/vmi=2, used: requests.cpu/vmi=0, limited: requests.cpu/vmi=1"
        bound = "quota default/tenant: requests.cpu/vmi: used 0, adds 2, hard 1: does not fit"
        planned = await _plan(["-f", files[0]])
        assert (planned.code, "created: VirtualMachine/web: it is not on the server" in planned.out) == (FINDINGS, True)
        assert f"waits: VirtualMachine/web: {words}" in planned.out and bound in planned.out
        dry = await _apply(["-f", files[0], "--dry-run"])
        assert dry.code == GOOD and f"paddock: waits: VirtualMachine/web: {words}\npaddock: {bound}\n" in dry.err
        machines = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
        halted = Path(files[0]).with_name("halted.yaml")
        halted.write_text(MACHINE.replace("Always", "Halted"))
        assert (await _apply(["-f", str(halted)])).code == GOOD
        changed = await _plan(["-f", files[0]])
        assert 'spec.runStrategy: "Halted" -> "Always"' in changed.out and words in changed.out
        assert (await api.current(f"{machines}/web")).data["spec"]["runStrategy"] == "Halted", "nothing is written"


async def _plan(argv: list[str]) -> Answer:
    out, err = io.BytesIO(), io.BytesIO()
    parsed = plan.parser().parse_args(argv)
    console = Console(out, err)
    reader = InputReader(console, AdmissionSettings())
    async with servers.connected(parsed, console) as session:
        objects = gather(reader, argv[1:], console)
        steps, forecast = await plan._compared(session, objects, AdmissionSettings(), console)
    code = plan._show(steps, objects, forecast, "text", console)
    return Answer(code, out.getvalue().decode(), err.getvalue().decode())


async def _apply(argv: list[str]) -> Answer:
    out, err = io.BytesIO(), io.BytesIO()
    options = apply.parser()
    parsed = options.parse_args(argv)
    code = await apply._apply(parsed, argv[1:2], Console(out, err))
    return Answer(code, out.getvalue().decode(), err.getvalue().decode())
