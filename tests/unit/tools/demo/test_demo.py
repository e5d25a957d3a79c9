"""The demonstration: what it says of guests, what it shows, what it applies, and that it forgets nothing of its own and nothing else."""

import io
import os
import signal
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from paddock.app.directory.paths import DataPaths
from paddock.base.errors import Terminal
from paddock.dialects.admission import admit
from paddock.schema.kind import AdmissionSettings
from tools.demo import ending, sight, stage
from tools.demo.place import Place
from tools.demo.screen import Screen
from tools.demo.sight import Guest, Seen

GUEST = Guest("kubevirt", "vm/web", "web")
WORDS = {"url": "http://127.0.0.1:8000/tiny.qcow2", "sha256": "ab" * 32, "key": "ssh-ed25519 " + "A" * 16}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 somebody"


def machine(state: str, *conditions: dict[str, str]) -> dict[str, Any]:
    spec = {"dataVolumeTemplates": [{"metadata": {"name": "web-root"}}], "template": {"spec": {}}}
    return {"metadata": {"name": "web"}, "spec": spec, "status": {"printableStatus": state, "conditions": list(conditions)}}


def said(seen: Seen) -> sight.Line:
    (line,) = sight.lines([GUEST], seen)
    return line


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (Seen(), "applied; its machine is not made yet"),
        (Seen({"web": machine("Starting")}), "Starting"),
        (
            Seen({"web": machine("Provisioning")}, {}, {"web-root": {"status": {"phase": "ImportInProgress", "progress": "43.0%"}}}),
            "its disk: ImportInProgress 43.0%",
        ),
        (Seen({"web": machine("Provisioning")}, {}, {"web-root": {"status": {"phase": "Succeeded"}}}), "Provisioning"),
        (
            Seen({"web": machine("ErrorUnschedulable", {"type": "Ready", "status": "False", "message": "no memory"})}),
            "ErrorUnschedulable: no memory",
        ),
        (Seen({"web": machine("DataVolumeError")}), "DataVolumeError: no reason given"),
    ],
)
def test_what_is_said_of_a_guest_that_does_not_run(seen: Seen, text: str) -> None:
    line = said(seen)
    assert (line.text, line.answers) == (text, False)


def test_a_guest_answers_when_it_has_an_address_and_its_agent_speaks() -> None:
    status: dict[str, Any] = {"interfaces": [{"name": "default"}, {"ipAddress": "10.0.0.5"}], "conditions": []}
    seen = Seen({"web": machine("Running")}, {"web": {"status": status}})
    assert (said(seen).text, said(seen).address) == ("Running; its guest boots", "10.0.0.5")
    # Left over from an earlier connection.
    status["guestOSInfo"] = {"prettyName": "Debian"}
    assert not said(seen).answers
    status["conditions"] = [{"type": "AgentConnected", "status": "True"}]
    assert said(seen).text == "Running, answers at 10.0.0.5 (Debian)"


def test_a_table() -> None:
    assert sight.table([("A", "LONG"), ("one", "x")]) == "A    LONG\none  x"


class Terminal80(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_are_told_once_where_nothing_can_be_redrawn() -> None:
    out = io.StringIO()
    screen = Screen(out)
    for states in ("ab", "ab", "ac"):
        screen.show([("one", states[0]), ("two", states[1])])
    assert [line.split(" s  ")[1] for line in out.getvalue().splitlines()] == ["one  a", "two  b", "two  c"]


def test_lines_are_redrawn_on_a_terminal_and_never_wider_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = Terminal80()
    screen = Screen(out)
    screen.show([("one", "a" * 50), ("two", "b")])
    first = out.getvalue()
    assert "\x1b[2F" not in first and all(len(line) <= len("\x1b[2K") + 19 for line in first.splitlines())
    screen.show([("one", "c"), ("two", "b")])
    assert out.getvalue().removeprefix(first).startswith("\x1b[2F\x1b[2K")
    screen.settle()
    screen.show([("one", "c")])
    assert out.getvalue().count("\x1b[2F") == 1


@pytest.mark.parametrize("path", sorted(stage.EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_applied_is_good(path: Path) -> None:
    documents = list(yaml.safe_load_all(Template(path.read_text()).substitute(WORDS | {"key": KEY})))
    names = {each["metadata"]["name"] for each in documents}
    for document in documents:
        findings = admit(document, AdmissionSettings()).findings
        assert [each for each in findings if each.severity == "error"] == []
    for guest in sight.GUESTS:
        if guest.dialect == path.stem:
            assert guest.front.partition("/")[2] in names


def test_a_directory_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    with pytest.raises(Terminal, match="holds something else"):
        Place(tmp_path).prepare()
    Place(tmp_path).forget()
    ending.end(Place(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]


def test_processes_are_ended_and_those_of_others_are_not(tmp_path: Path) -> None:
    place = Place(tmp_path / "demo")
    place.prepare()
    child = place.launch("shelf", ["tools.demo.shelf", place.images, place.port])
    assert place.find("shelf") is not None
    # Its number is somebody else's by now.
    note = place.root / "server.process"
    note.write_text(f'{{"pid": {os.getpid()}, "started": 1}}')
    assert place.find("server") is None
    place.end("server")
    place.end("shelf")
    assert child.wait() == -signal.SIGTERM
    place.forget()
    assert list(tmp_path.iterdir()) == []


def test_it_is_one_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PADDOCK_DEMO_DIR", str(tmp_path / "x"))
    place = Place.default()
    assert place.host == DataPaths(tmp_path / "x" / "host") and place.key.parent == place.examples.parent == tmp_path / "x"
