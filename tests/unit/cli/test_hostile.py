"""Inputs made to do harm end in a clear message, with a bounded use of processor time and memory. Never a traceback."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MEMORY = 500 * 10**6
# The costliest input takes 1.6 s on a quiet core. What grows faster than its input takes minutes.
SECONDS = 6
FRONT = b"apiVersion: infrastructure.stakater.com/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n  parameters:\n"
KUBEVIRT = b"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n"


def bomb() -> bytes:
    lines = ["a0: &a0 [" + "x," * 9 + "]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(lines).encode()


def merge_bomb() -> bytes:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}], k{n}: *a{n - 1}}}" for n in range(1, 30)]
    return "\n".join(lines).encode()


CASES: dict[str, tuple[Callable[[], bytes], int, str]] = {
    "alias bomb": (bomb, 2, "more than 50000 values in one object, aliases counted as often as they are used"),
    "merge bomb": (merge_bomb, 2, "more than 50000 values in one object"),
    "cyclic alias": (lambda: b"a: &a {b: [*a]}\n", 2, ":1:12: the alias *a stands inside of what it stands for"),
    "50 MB": (lambda: b"a: b\n" * 10_000_000, 2, "larger than 16 MiB; split it into several files"),
    "16 MB of one word": (lambda: FRONT + b"    cloudInit: {user: " + b"x" * 16_000_000 + b"}\n", 1, "not a Linux user name"),
    "deep lists": (lambda: b"a: " + b"[" * 1_000_000, 2, "nested deeper than 100 levels"),
    "deep mappings": (lambda: b"{a: " * 1_000_000, 2, "nested deeper than 100 levels"),
    "deep blocks": (lambda: b"- " * 1_000_000, 2, "nested deeper than 100 levels"),
    "deep keys": (lambda: b"? " * 1_000_000, 2, "nested deeper than 100 levels"),
    "binary data": (lambda: bytes(range(256)) * 4000, 2, "is binary data; a manifest is text in UTF-8"),
    "an image": (lambda: b"QFI\xfb" + bytes(100_000), 2, "is a qcow2 image"),
    "latin-1": (lambda: "name: ma\xf1ana\n".encode("latin-1"), 2, ":1:9: byte 8 (0xf1) is not UTF-8"),
    "half of UTF-16": (lambda: "name: x\n".encode("utf-16") + b"x", 2, "is not UTF-16"),
    "UTF-32": (lambda: "name: x\n".encode("utf-32"), 2, "is written in UTF-32"),
    "NUL bytes": (lambda: b"name: x\nkind: a\x00b\n", 2, ":2:8: the control character NUL cannot stand in YAML or JSON"),
    "escape sequences": (lambda: b"name: \x1b[2Jx\n", 2, "the control character U+001B"),
    "huge integers": (lambda: FRONT + b"    cpu: {cores: " + b"9" * 1_000_000 + b"}\n", 1, "spec.parameters.cpu.cores"),
    "many huge integers": (lambda: FRONT + b"    cpu: {cores: [" + b"9" * 4000 + b"," + b"8" * 300 + b"]}\n", 1, "must be an integer"),
    "huge quantity": (lambda: FRONT + b'    storage: {size: "' + b"9" * 10_000_000 + b'"}\n', 1, "not a Kubernetes quantity"),
    "a list without end": (lambda: b"kind: a\nb: [" + b"{}," * 5_000_000, 2, "more than 50000 values in one object"),
    "a list of objects without end": (lambda: b"kind: List\nitems: [" + b"{}," * 5_000_000, 2, "more than 20000 objects in one list"),
    "documents without end": (lambda: b"---\n" * 4_000_000, 2, "more than 20000 documents in one input"),
    "JSON values without end": (lambda: b"{}" * 8_000_000, 2, "more than 20000 documents in one input"),
    "unknown fields without end": (
        lambda: FRONT + b"".join(b"    name%d: 1\n" % n for n in range(24_000)), 1, "unknown field"
    ),
    "wrong entries without end": (lambda: FRONT + b"    additionalDisks: [" + b"{}," * 30_000 + b"]\n", 1, "Required value"),
    "wrong volumes without end": (
        lambda: KUBEVIRT + b"  template: {spec: {domain: {}, volumes: [" + b"{a: b}," * 15_000 + b"]}}\n", 1, "unknown field"
    ),
    "keys that stand twice": (lambda: b"a:\n" + b"  b: 1\n" * 24_000, 1, 'the key "b" stands twice'),
    "tags without end": (lambda: b"a: [" + b"!x y," * 24_000 + b"]", 1, "the tag !x cannot stand in a manifest"),
    "a program as a tag": (lambda: b"a: !!python/object/apply:os.system [true]\n", 1, "the tag !!python/object/apply:os.system cannot"),
    "user data, deep": (
        lambda: FRONT + b'    cloudInit: {userData: "#cloud-config\\n' + b"[" * 2_000_000 + b'"}\n', 1, "nested deeper than 200 levels"
    ),
    "user data, wide": (
        lambda: FRONT + b'    cloudInit: {userData: "#cloud-config\\na: [' + b"a," * 4_000_000 + b']"}\n', 1, "more than 100000 values"
    ),
    "a quote that does not end": (lambda: b'a: "' + b"x\\n" * 5_000_000, 2, ":1:4: a quoted text that does not end"),
    "a comment without end": (lambda: b"#" * 16_000_000, 0, "0 objects"),
}  # fmt: skip


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def paddock(*arguments: str, given: bytes = b"") -> tuple[int, str]:
    command = [sys.executable, "-c", "import sys; from paddock.cli.main import main; sys.exit(main())", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, preexec_fn=limit, timeout=60, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("name", CASES)
def test_hostile_input(name: str, tmp_path: Path) -> None:
    make, expected_code, expected_words = CASES[name]
    file = tmp_path / "hostile.yaml"
    file.write_bytes(make())
    code, said = paddock("validate", "-f", str(file))
    assert expected_words in said
    assert "Traceback" not in said
    assert code == expected_code


@pytest.mark.parametrize("command", [["render"], ["convert", "--to", "vitistack"], ["diff", "-f", "-"], ["plan", "--against", "-"]])
def test_every_command_reads_with_the_same_care(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_bytes(bomb())
    code, said = paddock(*command, "-f", str(file))
    assert "more than 50000 values" in said
    assert "Traceback" not in said
    assert code == 2


def test_a_device_without_end() -> None:
    code, said = paddock("validate", "-f", "/dev/zero")
    assert (code, said) == (2, "/dev/zero: larger than 16 MiB; split it into several files\n")


def test_standard_input_without_end() -> None:
    code, said = paddock("validate", "-f", "-", given=b"x" * 20_000_000)
    assert code == 2
    assert said.startswith("<stdin>: larger than 16 MiB")


def test_links_that_go_round(tmp_path: Path) -> None:
    os.symlink(tmp_path, tmp_path / "again")
    os.symlink(tmp_path / "nowhere", tmp_path / "gone.yaml")
    os.symlink("self.yaml", tmp_path / "self.yaml")
    code, said = paddock("validate", "-f", str(tmp_path))
    assert code == 2
    assert "gone.yaml: no such file or directory" in said
    assert "self.yaml: cannot be read: Too many levels of symbolic links" in said
    assert "Traceback" not in said
