"""`paddock plan` beside real machines: what it calls live reaches the guest's QEMU, and what it calls a restart waits for one."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")
Data = dict[str, Any]
# the hardware that a machine is made with, and its change
CHANGES: dict[str, tuple[Data, Data]] = {
    "sockets": ({"cpu": {"sockets": 1}}, {"cpu": {"sockets": 2}}),
    "sockets-far": ({"cpu": {"sockets": 1}}, {"cpu": {"sockets": 9}}),
    "memory-small": ({"memory": {"guest": "256Mi"}}, {"memory": {"guest": "512Mi"}}),
    "cores": ({}, {"cpu": {"cores": 2}}),
}


def effects(folder: Path, old: Data, new: Data) -> set[str]:
    """Return the effects that `paddock plan` gives for a change."""
    for name, document in (("old", old), ("new", new)):
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    given = ["plan", "-f", str(folder / "new.json"), "--against", str(folder / "old.json"), "-o", "json"]
    said = subprocess.run([sys.executable, "-m", "paddock.app", *given], capture_output=True, text=True, check=False)
    return {each["effect"] for each in json.loads(said.stdout)["changes"]}


@pytest.mark.spec("kubevirt", 116)
@played
async def test_what_is_planned_is_what_real_machines_do(talk: Talk, /, host: Host, tmp_path: Path) -> None:
    planned: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    for name, (made, _) in CHANGES.items():
        await talk.make(VMS, machine(name, domain=made))
    for name, (_, change) in CHANGES.items():
        await talk.running(name)
        old = await talk.get(f"{VMS}/{name}")
        plain = {key: old[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": name, "namespace": "default"}}
        domain = {**plain["spec"]["template"]["spec"]["domain"], **change}
        template = {**plain["spec"]["template"], "spec": {**plain["spec"]["template"]["spec"], "domain": domain}}
        planned[name] = effects(tmp_path, plain, {**plain, "spec": {**plain["spec"], "template": template}})
        await talk.change(f"{VMS}/{name}", {"spec": {"template": {"spec": {"domain": change}}}})
    for name in CHANGES:
        if "live" in planned[name]:
            await talk.until(f"{VMIS}/{name}", lambda found: _processors(found) == 2, "the guest has its second processor")
        else:
            await talk.until(f"{VMS}/{name}", lambda found: condition(found, "RestartRequired"), "the change waits")
    await asyncio.sleep(2)
    for name in CHANGES:
        waits = condition(await talk.get(f"{VMS}/{name}"), "RestartRequired").get("status") == "True"
        seen[name] = {"restart"} if waits else {"live"}
    assert planned == seen
    assert seen == {"sockets": {"live"}, "sockets-far": {"restart"}, "memory-small": {"restart"}, "cores": {"restart"}}


def _processors(found: Data) -> int:
    topology = (found.get("status") or {}).get("currentCPUTopology") or {}
    return int(topology.get("sockets") or 0)
