"""`paddock doctor` as a command: its report, its document, its exit codes, its changes; and the look at this very host."""

import asyncio
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from paddock.app.commands import doctor
from paddock.app.doctor import gather, judge, repair
from paddock.app.doctor.check import HostChange
from paddock.app.doctor.facts import DoctorFacts
from paddock.base.errors import Terminal
from paddock.cli.console import Console
from tests.golden import Golden
from tests.unit.app.doctor.test_judge import GOOD, USER, facts

LIMITED = facts(kvm={"state": "emulated", "detail": "it carries out 0.4 million instructions per second"}, tools={"swtpm": ""})


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> list[DoctorFacts]:
    """The facts that one look after the other finds; the last ones stay."""
    found = [GOOD]

    async def look(root: Path) -> DoctorFacts:
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(gather, "gather", look)
    return found


def run(*given: str) -> tuple[int, str, str]:
    out, err = io.BytesIO(), io.BytesIO()
    code = doctor.run([*given, "--dir", "/nowhere"], Console(out, err))
    return code, out.getvalue().decode(), err.getvalue().decode()


def test_the_report(host: list[DoctorFacts], golden: Golden) -> None:
    host[:] = [LIMITED]
    code, out, err = run()
    assert (code, err) == (0, "33 checks: 31 ok, 2 limited\n")
    assert max(map(len, out.splitlines())) <= 80
    golden("report.txt", out)


def test_quiet_shows_what_is_not_ok(host: list[DoctorFacts]) -> None:
    host[:] = [LIMITED]
    assert [line.split()[1] for line in run("--quiet")[1].splitlines() if not line.startswith(" ")] == ["swtpm", "kvm"]


@pytest.mark.parametrize(
    ("found", "code", "state"), [(GOOD, 0, "ok"), (LIMITED, 0, "limited"), (facts(tools={"qemu_img": ""}), 1, "broken")]
)
def test_the_document_and_the_exit_code(host: list[DoctorFacts], found: DoctorFacts, code: int, state: str) -> None:
    host[:] = [found]
    ended, out, _ = run("-o", "json")
    document = json.loads(out)
    assert (ended, document["state"], document["changes"]) == (code, state, [])
    assert [each["id"] for each in document["checks"]] == list(judge.CHECKS)
    assert set(document["checks"][0]) == {"id", "subject", "state", "found", "means", "fix", "fixable"}


def test_a_user_changes_nothing(host: list[DoctorFacts], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Terminal, match="sudo paddock doctor --fix"):
        run("--fix")


def test_each_change_is_said_and_the_host_is_looked_at_again(host: list[DoctorFacts], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Sequence[str]] = []

    def carry(argv: Sequence[str]) -> str:
        made.append(argv)
        return "no such module" if "vhost_net" in argv else ""

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(repair, "by_command", carry)
    host[:] = [facts(kvm={"state": "absent"}, kernel={"vhost_net": False, "loadable": {"vhost_net"}}), GOOD]
    code, out, err = run("--fix", "-q")
    assert code == 0
    assert made == [("modprobe", "kvm_intel"), ("modprobe", "-a", "vhost_net")]
    assert out == (
        "changed: load the kernel module kvm_intel (modprobe kvm_intel)\n"
        "failed to load the kernel modules vhost_net: no such module (modprobe -a vhost_net)\n"
    )
    assert err == "33 checks: 33 ok\n"


@pytest.mark.parametrize(
    ("argv", "error"),
    [(("true",), ""), (("/no/such/program",), "there is no /no/such/program on this host"), (("sh", "-c", "echo bad >&2; exit 3"), "bad")],
)
def test_a_change_by_a_command(argv: tuple[str, ...], error: str) -> None:
    assert [each.error for each in repair.carry_out([HostChange(argv, "do it")], repair.by_command)] == [error]


def test_this_host_is_judged_and_nothing_is_made(tmp_path: Path) -> None:
    found = asyncio.run(gather.gather(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []
    assert found.directory.path == str(tmp_path)
    assert found.limits.memory > 0 and found.limits.open_files > 0
    assert found.service.year >= 2026
    assert [each.id for each in judge.judge(found)] == list(judge.CHECKS)


def test_a_user_is_told_once_what_is_limited() -> None:
    checks = judge.judge(
        facts(
            **USER,
            tools={"nft": ""},
            kvm={"state": "forbidden"},
            network={"namespaces": "not root", "rootless": "forbidden", "rootless_fix": "x=1"},
        )
    )
    assert judge.at_start(checks).count("addresses of machines' own") == 1
    assert judge.worst(checks) == "limited"
