"""A user without root, without KVM, without groups and without namespaces: what `paddock up`, `paddock doctor`, `paddock why` and the Node
say is limited, and what works."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.runs.unprivileged import USER, Unprivileged

pytestmark = pytest.mark.needs("qemu", "root", "kubectl")
# The limit of a user namespace holds for those below it alone.
_FORBIDDEN = (
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "unshare", "--user", "--map-current-user", "--keep-caps"),
    *(
        "sh",
        "-c",
        'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"',
        "sh",
        "setpriv",
        "--ambient-caps=-all",
        "--inh-caps=-all",
        "env",
    ),
)


@pytest.fixture
def user(work: Path) -> Iterator[Unprivileged]:
    """The user, whose server and machines end with the test."""
    made = Unprivileged(work / "home", _FORBIDDEN)
    yield made
    made.paddock("down", "--purge", "--yes")


def test_a_user_without_rights_hears_once_what_is_limited(user: Unprivileged) -> None:
    said = user.paddock("up", "--detach", "--listen", "127.0.0.1:0")
    # The server names the limits once, on one line, and the rest works.
    assert said.stderr.count("\n") == 1, said.stderr
    lifted = "addresses of machines' own (user.max_user_namespaces is 0, which forbids namespaces of ordinary users; to lift it: sysctl -w "
    assert "not available here" in said.stderr and lifted in said.stderr and "KVM" in said.stderr
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
    said = user.paddock("why", "web").stdout
    assert "user.max_user_namespaces is 0" in said and "sysctl -w user.max_user_namespaces" in said
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
def test_a_user_shares_a_directory(work: Path, tiny_guest: tiny.TinyImage) -> None:
    user = Unprivileged(work / "home")
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
    user.paddock("down", "--purge", "--yes")
