"""`paddock operator`, as it is called, and as a process against a whole server on loopback."""

import asyncio
import io
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.console import Console
from paddock.kubernetes.client.target import LEASES, Key
from tests.coroutines import run_by
from tests.kit.servers import apiclient


@pytest.mark.parametrize(
    ("given", "environ", "words"),
    [
        ((), {"RECONCILE_INTERVAL": "abc"}, "paddock: RECONCILE_INTERVAL cannot be 'abc': 'abc' is not a duration; write numbers"),
        (("--max-concurrent-reconciles=no",), {}, "paddock: --max-concurrent-reconciles cannot be 'no'"),
        (("--kubeconfig", "/nowhere/config"), {}, "paddock: there is no kubeconfig /nowhere/config"),
        (("--dialect", "xen"), {}, "paddock: there is no front door 'xen'; choose of stakater, virtrigaud, vitistack"),
    ],
)
def test_what_cannot_be_meant_ends_the_start(
    given: tuple[str, ...], environ: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out, err = io.BytesIO(), io.BytesIO()
    assert main.run(["operator", *given], Console(out, err), COMMANDS) == 2
    assert err.getvalue().decode().startswith(words)
    assert out.getvalue() == b""


@run_by(asyncio.run)
async def test_as_a_process(tmp_path: Path) -> None:
    async with apiclient.over_tls(tmp_path) as client:
        pages = ("--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0")
        command = ("-m", "paddock.app", "operator", "--kubeconfig", str(tmp_path / "kubeconfig"), "--dialect", "vitistack", *pages)
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
        assert process.stderr is not None
        said: list[dict[str, Any]] = []
        async with asyncio.timeout(60):
            while not said or said[-1]["message"] != "leader election won":
                said.append(json.loads(await process.stderr.readline()))
        lease = Key("default", "paddock-operator-vitistack")
        assert (await client.get(LEASES, lease))["spec"]["holderIdentity"] == said[-1]["identity"]
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            rest = (await process.stderr.read()).decode().splitlines()
            assert await process.wait() == 0
        said += map(json.loads, rest)
        assert {"timestamp", "level", "logger", "message"} <= set.intersection(*(set(line) for line in said))
        messages = [line["message"] for line in said]
        assert messages[0] == "operator started" and messages[-2:] == ["operator stopping", "operator stopped"]
        # The next one need not wait.
        assert (await client.get(LEASES, lease))["spec"]["holderIdentity"] == ""
