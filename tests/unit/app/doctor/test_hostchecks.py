"""The checks beside a running server: its line, the conditions of its Node, and a host that cannot be examined."""

import asyncio
from pathlib import Path

import pytest

from paddock.app.doctor import gather
from paddock.app.doctor.facts import DoctorFacts
from paddock.app.server.hostchecks import HostExamination
from tests.unit.app.doctor.test_judge import facts


def examined(monkeypatch: pytest.MonkeyPatch, found: DoctorFacts | Exception) -> HostExamination:
    async def look(root: Path) -> DoctorFacts:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(gather, "gather", look)
    host = HostExamination(Path("/nowhere"))
    asyncio.run(host.examine())
    return host


def test_the_conditions_say_what_the_command_says(monkeypatch: pytest.MonkeyPatch) -> None:
    host = examined(monkeypatch, facts(tools={"swtpm": "", "qemu_img": ""}, service={"port_use": "taken"}))
    assert [(each.type, each.reason) for each in host.conditions()] == [("QemuImgLimited", "Broken"), ("SwtpmLimited", "Limited")]
    assert host.conditions()[1].message == (
        "there is no swtpm on this host; machines with devices.tpm cannot start; to mend it: install it (on Debian: apt install swtpm)"
    )
    assert host.line() == "not available here: disks, TPMs; `paddock doctor` says why and what helps"


def test_a_host_that_cannot_be_examined_runs_machines_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host = examined(monkeypatch, OSError("no /proc"))
    assert (host.conditions(), host.line()) == ((), "")
    assert "host cannot be examined" in caplog.text


def test_before_the_first_look_nothing_is_said() -> None:
    host = HostExamination(Path("/nowhere"))
    assert (host.conditions(), host.line()) == ((), "")
