"""The routed network of an ordinary user with real guests: addresses, names, Services, policies, ports of the host; a kill, and the end."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from paddock.base.images.build import tiny
from tests.host.networks.namespaces import Child, Lab
from tests.host.networks.talking import tcp_peer, web_ask
from tests.host.runs.unprivileged import Unprivileged, become

pytestmark = pytest.mark.needs("qemu", "root", "kubectl", "netns", "rootless")
# Other tests have other users; this one counts all processes of its own.
_USER = 61_236
UP = ("up", "--detach", "--listen", "127.0.0.1:0")


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host and somebody outside."""
    made = Lab(work / "lab")
    yield made
    made.close()


@pytest.fixture
def user(lab: Lab, work: Path) -> Iterator[Unprivileged]:
    """A user of that host."""
    made = Unprivileged(work / "home", ("ip", "netns", "exec", lab.host, *become(_USER)), _USER)
    yield made
    made.paddock("down", "--purge", "--yes")
    assert processes(made) == [], "a purge leaves no process"


def processes(user: Unprivileged) -> list[str]:
    """Return the processes of the user that live."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with contextlib.suppress(OSError):
                state = (each / "stat").read_text().rpartition(")")[2].split()[0]
                if each.stat().st_uid == _USER and state != "Z":
                    found.append((each / "comm").read_text().strip())
    return sorted(found)


def until(user: Unprivileged, what: str, *words: str) -> str:
    """A command of a guest succeeds within a while; returns its output."""
    end = time.monotonic() + 30
    while True:
        said = user.run([*user.program, "exec", words[0], "--", *words[1:]])
        if said.returncode == 0:
            return said.stdout
        assert time.monotonic() < end, f"{what}: {said.stdout}{said.stderr}"


def apply(user: Unprivileged, work: Path, *documents: dict[str, object]) -> None:
    """Apply objects."""
    path = work / "objects.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    user.kubectl("apply", "-f", str(path))


def service(name: str, kind: str) -> dict[str, object]:
    """A Service for the web server of a machine."""
    spec = {"type": kind, "selector": {"vm.kubevirt.io/name": name}, "ports": [{"port": 8080, "targetPort": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-{kind.lower()}"}, "spec": spec}


POLICY: dict[str, object] = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "alone"},
    "spec": {"podSelector": {"matchLabels": {"vm.kubevirt.io/name": "a"}}, "policyTypes": ["Ingress"]},
}


def web(address: str, port: int = 80) -> tuple[str, ...]:
    """The words that ask a web server, within a second."""
    return ("sh", "-c", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 5 nc -w 1 {address} {port} | tail -n 1 | grep .")


def server_of(user: Unprivileged) -> int:
    """Return the server's process."""
    return int(json.loads((user.root / "server.json").read_text())["pid"])


def eventually(look: Callable[[], object], what: str) -> None:
    """Something is so within a while."""
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def policies(user: Unprivileged, lab: Lab, work: Path, address: str, inside: str, node: int) -> None:
    """A policy denies and its end allows, for guests and through the host's ports."""
    apply(user, work, POLICY)
    eventually(lambda: user.run([*user.program, "exec", "b", "--", *web(address)]).returncode != 0, "the policy denies")
    assert user.run([*user.program, "exec", "b", "--", *web(inside, 8080)]).returncode != 0
    assert not Child(lab.outside, web_ask("198.51.100.2", node)).result()
    user.kubectl("delete", "networkpolicy", "alone")
    assert until(user, "the policy ends", "b", *web(address)) == "a\n"


@pytest.mark.spec("kubevirt", 227)
@pytest.mark.spec("kubevirt", 270)
def test_an_ordinary_users_guests_have_what_roots_have(user: Unprivileged, lab: Lab, work: Path, tiny_guest: tiny.TinyImage) -> None:
    said = user.paddock(*UP)
    assert "addresses of machines' own" not in said.stderr
    for name in ("a", "b"):
        user.paddock("run", str(tiny_guest.disk), "--name", name, "--memory", "192Mi")
    shown = json.loads(user.kubectl("get", "vmi", "-o", "json"))["items"]
    address = {each["metadata"]["name"]: each["status"]["interfaces"][0]["ipAddress"] for each in shown}
    assert not any(each.startswith("127.") for each in address.values())
    assert not any(c["type"] == "NetworkLimited" for each in shown for c in each["status"]["conditions"])
    # DHCP, names, and the other guest by both.
    assert "inet 10.0.2.2" in user.paddock("exec", "b", "--", "ip", "-4", "addr", "show", "eth0").stdout
    assert until(user, "the other's address", "b", *web(address["a"])) == until(user, "its name", "b", *web("a")) == "a\n"
    # Out, seen as the host; and not to the host's own programs.
    outside, own = Child(lab.outside, tcp_peer(80)), Child(lab.host, tcp_peer(7444))
    try:
        ask = ("sh", "-c", "sleep 1 | timeout 5 nc -w 2 198.51.100.1 80 | grep .")
        assert until(user, "outside", "b", *ask) == "198.51.100.2\n"
        for place in ("198.51.100.2", "10.0.2.1"):
            refused = user.run([*user.program, "exec", "b", "--", "sh", "-c", f"sleep 1 | timeout 5 nc -w 2 {place} 7444 | grep ."])
            assert refused.returncode != 0, refused.stdout
        record = user.root / "engine" / "networks" / "namespace.json"
        os.kill(json.loads(record.read_text())["uplink"], signal.SIGKILL)
        assert until(user, "outside, by another pasta", "b", *ask) == "198.51.100.2\n"
    finally:
        outside.end()
        own.end()
    # Services inside, and at ports of the host: from outside, and from the host.
    apply(user, work, service("a", "ClusterIP"), service("a", "NodePort"))
    services = {each["metadata"]["name"]: each["spec"] for each in json.loads(user.kubectl("get", "services", "-o", "json"))["items"]}
    inside, node = services["a-clusterip"]["clusterIP"], services["a-nodeport"]["ports"][0]["nodePort"]
    assert until(user, "the Service", "b", *web(inside, 8080)) == "a\n"
    ports = [(namespace, web_ask(place, node)) for namespace, place in ((lab.outside, "198.51.100.2"), (lab.host, "127.0.0.1"))]
    for namespace, ask_port in ports:
        eventually(lambda n=namespace, a=ask_port: Child(n, a).result().startswith("HTTP"), "a port of the host")  # type: ignore[misc]
    # Killed, the guests talk on; started again, everything is there.
    before = user.qemus_alive()
    os.kill(server_of(user), signal.SIGKILL)
    eventually(lambda: len(processes(user)) == 5, "the server is gone")
    left = [each.removesuffix(".avx2").replace("passt", "pasta") for each in processes(user)]
    # The Python is what answers DHCP and names.
    assert [each.rstrip("0123456789.") for each in left] == ["pasta", "python", "qemu-system-x", "qemu-system-x", "sleep"]
    assert all(Child(namespace, ask_port).result().startswith("HTTP") for namespace, ask_port in ports), "its ports go on"
    user.paddock(*UP)
    assert user.qemus_alive() == before
    assert until(user, "the name after a restart", "b", *web("a")) == until(user, "the Service", "b", *web(inside, 8080)) == "a\n"
    policies(user, lab, work, address["a"], inside, node)
    # Guests gone and the server stopped, nothing of the network stays.
    user.paddock("rm", "a", "b", "--purge", "--yes")
    user.paddock("down")
    assert processes(user) == []


@pytest.mark.spec("kubevirt", 228)
def test_a_guest_of_user_mode_stays_there_until_it_starts_again(user: Unprivileged, tiny_guest: tiny.TinyImage) -> None:
    user.paddock(*UP, "--network", "user")
    user.paddock("run", str(tiny_guest.disk), "--name", "a", "--memory", "192Mi")
    before = user.qemus_alive()
    user.paddock("down")
    user.paddock(*UP)
    user.paddock("run", str(tiny_guest.disk), "--name", "b", "--memory", "192Mi")
    assert user.qemus_alive() > before
    seen = json.loads(user.kubectl("get", "vmi", "a", "-o", "json"))["status"]
    assert seen["interfaces"][0]["ipAddress"].startswith("127.64.")
    assert "stays in user mode until it starts again" in next(c for c in seen["conditions"] if c["type"] == "NetworkLimited")["message"]
    assert user.paddock("exec", "a", "--", "hostname").stdout == "a\n"
    user.paddock("restart", "a")
    eventually(lambda: user.qemus_alive() and not user.qemus_alive() >= before, "another QEMU")
    assert until(user, "the one in the pod network", "b", *web("a")) == "a\n"


def test_a_namespace_that_must_be_there_and_cannot(work: Path) -> None:
    user = Unprivileged(work / "home", user=_USER)
    user.hide("pasta")
    said = user.paddock("up", "--network", "rootless", "--listen", "127.0.0.1:0", code=2)
    assert (
        "cannot make a network for machines without root: pasta is not installed; install it (on Debian: apt install passt)" in said.stderr
    )
    assert processes(user) == [] and not user.root.exists()
