"""A host that forbids namespaces to ordinary users, by a stand-in of its sysctl: doctor, the start and `why` name what lifts it."""

import asyncio
import os
from pathlib import Path

import pytest

from paddock.app.doctor import judge
from paddock.cli.explanations import lines
from paddock.engine import namespace
from paddock.engine.host import subprocesses
from paddock.engine.networks import hostnetwork, rootless
from tests.scenario.why.cluster import NOW, condition
from tests.unit.app.doctor.test_judge import USER, facts, outcome
from tests.unit.kubevirt.plan.why.test_rules import RUNNING, why

APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ubuntu's setting, on a host where this user's trial fails as it does there."""

    async def refused(*_: object) -> tuple[bytes, bytes, int]:
        return b"a device: Operation not permitted", b"", 1

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(hostnetwork, "is_admin", lambda: False)
    monkeypatch.setattr(namespace._State, "refusal", None)
    monkeypatch.setattr(rootless, "_SETTINGS", tmp_path)
    monkeypatch.setattr(rootless, "_programs", lambda: None)
    monkeypatch.setattr(rootless, "_fork", lambda: (0, "a device: Operation not permitted"))
    monkeypatch.setattr(subprocesses, "run", refused)
    path = tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns"
    path.parent.mkdir()
    path.write_text("1\n")
    return path


@pytest.mark.spec("kubevirt", 257)
def test_the_rule_of_apparmor_is_named_with_the_line_that_lifts_it(tmp_path: Path, setting: Path) -> None:
    forbids = f"{APPARMOR} is 1, which forbids namespaces of ordinary users"
    line = f"sysctl -w {APPARMOR}=0"
    refused = asyncio.run(rootless.examine())
    assert refused is not None and (refused.why, refused.fix) == (forbids, line)
    # doctor
    found = facts(**USER, network={"rootless": refused.why, "rootless_fix": refused.fix}, kernel={"user_namespaces": False})
    rights = outcome("network-rights", found)
    assert rights.sentence.startswith(f"no network namespace: {forbids}; ")
    assert [outcome(each, found).outcome.fix for each in ("network-rights", "user-namespaces")] == [
        f"{line}; or run Paddock as root",
        f"{line}, or run Paddock as root",
    ]
    # the start
    assert f"({forbids}; to lift it: {line})" in judge.at_start(judge.judge(found))
    # the machines of a server that starts there, and why
    rootless.enter(tmp_path / "networks", "auto")
    said = condition("NetworkLimited", "True", "UserModeNetwork", f"no ping; no pod network: {hostnetwork.why_not_routed()}; one queue")
    vm, vmi = RUNNING
    alone = {**vmi, "status": {"phase": "Running", "conditions": [*vmi["status"]["conditions"], said]}}
    (told,) = lines(why(vm, alone), NOW)
    assert told.endswith(f"(The machine is alone in user mode: {forbids}; to lift it: {line}.)")


@pytest.mark.spec("kubevirt", 257)
def test_a_host_that_permits_them_to_programs_blames_no_setting(setting: Path) -> None:
    setting.write_text("0\n")
    refused = asyncio.run(rootless.examine())
    assert refused is not None and APPARMOR not in f"{refused}"
