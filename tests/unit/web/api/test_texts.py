"""Texts for people: commands of a fix, ends of logs, pressure, keys."""

from pathlib import Path

import pytest

from paddock.web.api import logs
from paddock.web.api.host import LocalFacts, some_of
from paddock.web.api.sources import public_keys
from paddock.web.api.why import commands


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        ("", []),
        ("Wait.", []),
        ("kubectl uncordon HOST", ["kubectl uncordon HOST"]),
        ("`paddock start web` starts it", ["paddock start web"]),
        ("Delete it (kubectl delete vmi web -n default), or rename the machine.", ["kubectl delete vmi web -n default"]),
        ("Ask for less, or raise it: kubectl edit resourcequota q -n default", ["kubectl edit resourcequota q -n default"]),
        ("See why: paddock why vm/web.", ["paddock why vm/web"]),
        ("Do what it says: paddock status, or the operator's pods.", ["paddock status"]),
        # Prose that goes on after the name of a command is none to copy.
        ("Wait. paddock image ls shows what is there.", []),
        ("Say `rm -rf /` or <script>.", []),
    ],
)
def test_commands_of_a_fix(fix: str, expected: list[str]) -> None:
    assert commands(fix) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", b""),
        (b"boot\n", b"boot\n"),
        (b"boot\r\nweb login: ada\nPassword:", b"boot\r\nweb login: "),
        (b"login: ", b"login: "),
        (b"x" * 100 + b" login: is a word\n", b"x" * 100 + b" login: is a word\n"),
    ],
)
def test_a_boot_ends_at_the_prompt(data: bytes, expected: bytes) -> None:
    assert logs.until_login(data) == expected


def test_the_end_of_a_long_log_begins_with_a_line() -> None:
    data = b"".join(b"line %06d\n" % number for number in range(40_000))
    found = logs.tail(data)
    assert logs.MOST_BYTES - 12 <= len(found) <= logs.MOST_BYTES
    assert data.endswith(found)
    assert found.startswith(b"line ")
    assert logs.tail(b"x" * (logs.MOST_BYTES + 5)) == b"x" * logs.MOST_BYTES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00 avg60=0 avg300=0 total=0\n", 1.25),
        ("full avg10=9.00\n", -1.0),
        ("some avg10=much\n", -1.0),
        ("", -1.0),
    ],
)
def test_pressure(text: str, expected: float) -> None:
    assert some_of(text) == expected


def test_a_kernel_without_pressure(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("some avg10=3.00 avg60=0.00 avg300=0.00 total=1\n")
    found = LocalFacts.read(tmp_path / "nothing", tmp_path)
    assert (found.pressure.cpu, found.pressure.memory, found.disk, found.used_disk) == (3.0, -1.0, -1, -1)


def test_keys(tmp_path: Path) -> None:
    (tmp_path / "b.pub").write_text("ssh-rsa AAAA\n")
    (tmp_path / "a.pub").write_text("ssh-ed25519 AAAA <script>alert(1)</script>\n")
    (tmp_path / "secret.pub").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "large.pub").write_text("ssh-ed25519 AAAA " + "x" * 20_000)
    (tmp_path / "binary.pub").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.pub").mkdir()
    (tmp_path / "id_ed25519").write_text("private")
    found = public_keys(tmp_path)
    assert [(each.name, each.type) for each in found] == [("script-alert-1-script", "ssh-ed25519"), ("b", "ssh-rsa")]
    assert public_keys(tmp_path / "nothing") == []
