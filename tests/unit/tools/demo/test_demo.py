"""The demonstration: what it says of guests, what it shows, what it applies, and that it forgets nothing of its own and nothing else."""

import io
import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from subprocess import Popen
from typing import Any, cast

import pytest
import yaml

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.app.directory.process import RunningServer
from paddock.base.errors import Terminal
from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.kind import AdmissionSettings
from tools.demo import ending, play, sight, stage
from tools.demo.place import Place
from tools.demo.screen import Screen
from tools.demo.sight import Guest, Seen

GUEST = Guest("kubevirt", "web")
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
        (Seen(), "no VirtualMachine yet"),
        (Seen({"web": machine("Starting")}), "Starting"),
        (
            Seen({"web": machine("Provisioning")}, {}, {"web-root": {"status": {"phase": "ImportInProgress", "progress": "43.0%"}}}),
            "Provisioning; ImportInProgress 43 %",
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
    assert (said(seen).text, said(seen).address) == ("Running; the guest boots", "10.0.0.5")
    # Left over from an earlier connection.
    status["guestOSInfo"] = {"prettyName": "Debian"}
    assert not said(seen).answers
    status["conditions"] = [{"type": "AgentConnected", "status": "True"}]
    assert said(seen).text == "10.0.0.5, Debian"


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    long = "192.168.122.250"
    lines = [sight.Line(guest, "Running", long, "Paddock tiny guest") for guest in sight.GUESTS]
    table = sight.table(sight.rows(lines, dict.fromkeys(sight.GUESTS, 41.6)))
    assert table[0].split() == ["DIALECT", "MACHINE", "READY", "STATE"] and len(table) == 1 + len(sight.GUESTS)
    assert table[1] == "kubevirt    kubevirt-vm        42 s   192.168.122.250, Paddock tiny guest"
    assert max(map(len, table)) < 80


def test_a_guest_is_ready_only_while_it_answers() -> None:
    (_, row) = sight.rows([sight.Line(GUEST, "Starting")], {GUEST: 12.0})
    assert row == ("kubevirt", "web", "", "Starting")


class Terminal80(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_change_is_a_line_where_nothing_can_be_redrawn() -> None:
    out = io.StringIO()
    screen = Screen(out)
    for states in ("ab", "ab", "ac"):
        screen.tell([("one", states[0]), ("two", states[1])])
        screen.draw(["a table"])
    screen.settle(["the table"])
    *told, last = out.getvalue().splitlines()
    assert [line.split(" s  ")[1] for line in told] == ["one  a", "two  b", "two  c"] and last == "the table"


@dataclass
class Glass:
    """The characters of a terminal that understands what the demonstration writes, and nothing else."""

    rows: list[str] = field(default_factory=lambda: [""])
    row: int = 0

    def feed(self, text: str) -> None:
        """Carry out text and sequences."""
        for plain, number, what in re.findall(r"([^\x1b]+)|\x1b\[(\d*)([FKJ])", text):
            if what == "F":
                assert int(number) <= self.row, "above the first line"
                self.row -= int(number)
            elif what == "J":
                del self.rows[self.row :]
                self.rows.append("")
            elif what == "":
                self._write(plain)

    def _write(self, plain: str) -> None:
        for piece in re.findall(r"[^\n]+|\n", plain):
            if piece == "\n":
                self.row += 1
                self.rows += [""] * (self.row + 1 - len(self.rows))
            else:
                # Each line is cleared behind its text.
                self.rows[self.row] = piece


def test_the_table_is_redrawn_in_place_and_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "24")
    out = Terminal80()
    screen, glass = Screen(out), Glass()
    screen.say("first")
    for lines in (["a" * 50, "b", "c"], ["d", "e"], ["f", "g", "h"]):
        screen.draw(lines)
        screen.tell([("one", lines[0])])
    assert all(f"{line}\x1b[K\n" in out.getvalue() for line in ("a" * 19, "d", "h"))
    glass.feed(out.getvalue())
    assert glass.rows == ["first", "f", "g", "h", ""]
    screen.settle(["x" * 50])
    screen.say("after")
    glass = Glass()
    glass.feed(out.getvalue())
    assert glass.rows == ["first", "x" * 50, "after", ""]


@pytest.mark.parametrize("programs", [("kubectl",), ()])
@pytest.mark.parametrize(("address", "web"), [("10.112.107.58", "http://10.112.107.58/"), ("127.8.0.3", "http://127.8.0.3:64592/")])
def test_it_ends_with_commands_that_fit_the_terminal(
    programs: tuple[str, ...], address: str, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in programs else None)
    place = Place(Path("/var/lib/paddock-demo"))
    guests = [sight.Line(each, "Running", address, "Paddock tiny guest") for each in sight.GUESTS]
    lines = play._next(place, guests).splitlines()
    assert max(map(len, lines)) < 80
    commands = [line.strip().partition("  #")[0].strip() for line in lines if line.startswith("  ")]
    assert commands[0] == f"export KUBECONFIG={place.host.kubeconfig}" and f"curl {web}" in commands
    assert f".venv/bin/paddock ssh -i {place.key} root@kubevirt-vm" in commands
    assert not any(word in play._next(place, [sight.Line(sight.GUESTS[0], "Starting"), *guests[1:]]) for word in (" ssh ", "curl"))
    assert any(line.startswith("kubectl get") for line in commands) == ("kubectl" in programs)
    assert "`make demo-down`" in lines[1] and "web console" in lines[1]
    assert ".venv/bin/paddock ui" in commands


def test_a_low_terminal_has_the_beginning_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "3")
    out = Terminal80()
    screen = Screen(out)
    for _ in range(2):
        screen.draw(["a", "b", "c", "d"])
    # The cursor is in the last line, below two.
    assert "c" not in out.getvalue() and "\x1b[2F" in out.getvalue()


@pytest.mark.parametrize("path", sorted(stage.EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_applied_is_good(path: Path) -> None:
    documents = list(yaml.safe_load_all(Template(path.read_text()).substitute(WORDS | {"key": KEY})))
    names = {each["metadata"]["name"] for each in documents}
    for document in documents:
        findings = admit(document, AdmissionSettings()).findings
        assert [each for each in findings if each.severity == "error"] == []
    for guest in sight.GUESTS:
        if guest.dialect == path.stem:
            # A pool numbers its machines.
            assert {guest.name, guest.name.rpartition("-")[0]} & names


@dataclass
class Server:
    """The process of a server that lives."""

    def poll(self) -> None:
        """It has not ended."""


@pytest.mark.parametrize("is_new", [True, False])
def test_the_link_of_the_web_console_is_shown_once(is_new: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = "http://127.0.0.1:4711/login/secret"
    # The console starts after the API server.
    answers = [None, "", link] if is_new else [link]
    found = [each if each is None else RunningServer(1, 1, "https://127.0.0.1:1", console=each) for each in answers]
    monkeypatch.setattr(process, "find", lambda places: found.pop(0) if len(found) > 1 else found[0])
    said: list[str] = []
    stage._console(Place(tmp_path), (cast("Popen[bytes]", Server()), 0.0) if is_new else None, said.append)
    if is_new:
        assert said[-1] == link and "one session" in said[0]
    else:
        assert "secret" not in said[0] and "http://127.0.0.1:4711/;" in said[0] and "`paddock ui`" in said[0]


def test_a_server_of_before_without_a_console_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "find", lambda places: RunningServer(1, 1, "https://127.0.0.1:1"))
    stage._console(Place(tmp_path), None, pytest.fail)


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
