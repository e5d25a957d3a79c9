"""A user without root, without KVM and without groups: what `paddock up`, `paddock doctor` and the Node say is limited, and what works."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

import paddock
from paddock.engine.images.build import tiny

pytestmark = pytest.mark.needs("qemu", "root", "kubectl")
# Nobody has this number.
USER = 61_234
SECONDS = 240
# setpriv itself starts a program with the rights that it takes away; env does not have them any more.
_BECOME = (
    "setpriv",
    f"--reuid={USER}",
    f"--regid={USER}",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--no-new-privs",
    "env",
)


class Unprivileged:
    """A user with a home of its own, and the program as an installation of the host's Python would start it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / ".local" / "state" / "paddock"
        packages = [str(Path(paddock.__file__).parents[1]), str(Path(yaml.__file__).parents[1])]
        # A name or an entry in /etc/passwd is not needed either.
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        self._python = self._find_python()

    def _find_python(self) -> str:
        """This Python, if that user may start it; otherwise the host's of the same version."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for program in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin") or ""):
            if program and self.run([program, "-c", "import msgspec, paddock.app.main"]).returncode == 0:
                return program
        pytest.skip(f"needs python: no {version} here may be started by another user")

    def run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A command of that user's."""
        words = [*_BECOME, *argv]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=self._environment, cwd=self.home, timeout=SECONDS)

    def paddock(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """A command of the program."""
        said = self.run([self._python, "-m", "paddock.app", *words])
        assert said.returncode == code, said.stdout + said.stderr
        return said

    def qemus(self) -> set[int]:
        """Return the users that the machines of this server run as."""
        records = (json.loads(path.read_text()) for path in self.root.glob("engine/machines/*/process.json"))
        return {Path(f"/proc/{each['pid']}").stat().st_uid for each in records}

    def kubectl(self, *words: str) -> str:
        """kubectl of that user's."""
        said = self.run(["kubectl", f"--kubeconfig={self.root / 'kubeconfig'}", *words])
        assert said.returncode == 0, said.stderr
        return said.stdout


@pytest.fixture
def user(work: Path) -> Iterator[Unprivileged]:
    """The user, whose server and machines end with the test."""
    home = work / "home"
    home.mkdir()
    work.chmod(0o755)
    os.chown(home, USER, USER)
    made = Unprivileged(home)
    yield made
    made.paddock("down", "--purge", "--yes")


def test_a_user_without_rights_hears_once_what_is_limited(user: Unprivileged) -> None:
    said = user.paddock("up", "--detach", "--listen", "127.0.0.1:0")
    # The server names the limits once, on one line, and the rest works.
    assert said.stderr.count("\n") == 1, said.stderr
    assert "not available here" in said.stderr and "addresses of machines' own" in said.stderr and "KVM" in said.stderr
    limits = {each["id"]: each for each in json.loads(user.paddock("doctor", "-o", "json").stdout)["checks"] if each["state"] != "ok"}
    assert {"network-rights", "namespaces", "control-groups"} <= set(limits)
    assert all(each["state"] == "limited" for each in limits.values())
    node = json.loads(user.kubectl("get", "nodes", "-o", "json"))["items"][0]
    messages = {each["type"]: each["message"] for each in node["status"]["conditions"]}
    assert messages["NetworkRightsLimited"].startswith(limits["network-rights"]["found"])


def test_a_user_without_rights_has_machines_that_work(user: Unprivileged, tiny_guest: tiny.TinyImage) -> None:
    user.paddock("up", "--detach", "--listen", "127.0.0.1:0")
    user.paddock("run", str(tiny_guest.disk), "--name", "web", "--memory", "192Mi")
    assert user.paddock("exec", "web", "--", "hostname").stdout == "web\n"
    # QEMU's own network gave the guest its address, and QEMU has no other rights than the user.
    assert "inet 10.0.2." in user.paddock("exec", "web", "--", "ip", "-4", "addr", "show", "eth0").stdout
    assert user.qemus() == {USER}
    user.paddock("down")
    again = user.paddock("up", "--detach", "--listen", "127.0.0.1:0")
    assert again.stderr.count("not available here") == 1
    assert user.paddock("exec", "web", "--", "cat", "/proc/uptime").stdout, "the guest outlived the server"
    # A user's machine without rights waits for no address of its own: the reason stands beside it once, not in every command.
    assert "not available here" not in user.paddock("ls").stderr


@pytest.mark.spec("kubevirt", 133)
@pytest.mark.needs("virtiofsd")
def test_a_user_without_rights_shares_a_directory(user: Unprivileged, tiny_guest: tiny.TinyImage) -> None:
    source = user.home / "src"
    source.mkdir()
    (source / "mine").write_text("mine\n")
    for path in (source, source / "mine"):
        os.chown(path, USER, USER)
    user.paddock("up", "--detach", "--listen", "127.0.0.1:0", "--share", str(user.home))
    user.paddock("run", str(tiny_guest.disk), "--name", "web", "--memory", "192Mi", "--mount", "./src:/src")
    assert user.paddock("exec", "web", "--", "cat", "/src/mine").stdout == "mine\n"
    user.paddock("exec", "web", "--", "sh", "-c", "echo root >/src/a; su tiny -s /bin/sh -c 'echo tiny >/src/b'")
    assert {name: (source / name).stat().st_uid for name in "ab"} == {"a": USER, "b": USER}
    # The home itself has the server's data below it.
    user.paddock("rm", "web", "--purge", "--yes")
    refused = user.paddock("run", str(tiny_guest.disk), "--name", "home", "--mount", ".:/home/me", code=1)
    assert "keeps its own data" in refused.stderr
    assert (source / "mine").read_text() == "mine\n" and (source / "b").read_text() == "tiny\n"
