"""The pure parts of the ways into a guest."""

from pathlib import Path
from typing import Any

import pytest

from paddock.cli import guestcommands as commandline
from paddock.fleet.guests import exposing, forwarding, guestlogs, sshclient, viewers
from paddock.fleet.guests.forwarding import BadPort, PortForward
from paddock.fleet.guests.viewers import NoViewer
from paddock.fleet.kinds import VM
from paddock.fleet.machines.finding import MachineView


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("80", PortForward("127.0.0.1", 80, 80)),
        ("8080:80", PortForward("127.0.0.1", 8080, 80)),
        (":80", PortForward("127.0.0.1", 0, 80)),
        ("5353:53/udp", PortForward("127.0.0.1", 5353, 53, "udp")),
        ("22/tcp", PortForward("127.0.0.1", 22, 22)),
        ("0.0.0.0:8080:80", PortForward("0.0.0.0", 8080, 80)),
        ("0.0.0.0::80", PortForward("0.0.0.0", 0, 80)),
        ("[::1]:8080:80", PortForward("::1", 8080, 80)),
        ("localhost:8080:80/udp", PortForward("localhost", 8080, 80, "udp")),
    ],
)
def test_ports(text: str, parsed: PortForward) -> None:
    assert forwarding.parse(text) == parsed


@pytest.mark.parametrize("text", ["", "x", "0", "65536", "80:", "80:0", "-1", "80/icmp", "1:2:3:x", "\u0663"])
def test_ports_that_are_none(text: str) -> None:
    with pytest.raises(BadPort):
        forwarding.parse(text)


@pytest.mark.parametrize(
    ("user_data", "user"),
    [
        ("#cloud-config\nuser: ann\n", "ann"),
        ("#cloud-config\nuser: {name: ann}\n", "ann"),
        ("#cloud-config\nusers: [default, {name: bob}]\nuser: ann\n", "bob"),
        ("#cloud-config\nusers: [default]\n", ""),
        ("#cloud-config\nusers: {a: b}\n", ""),
        ("#cloud-config\n[broken", ""),
        ("#cloud-config\n", ""),
        ("#!/bin/sh\nuser: ann\n", ""),
    ],
)
def test_the_user_of_cloud_init(user_data: str, user: str) -> None:
    assert sshclient.user_in(user_data) == user


@pytest.mark.parametrize(
    ("words", "user"),
    [
        (("debian",), "debian"),
        (("", "quay.io/containerdisks/ubuntu:24.04"), "ubuntu"),
        (("", "registry/centos-stream:9"), "cloud-user"),
        (("windows",), ""),
        ((), ""),
    ],
)
def test_the_user_of_an_image(words: tuple[str, ...], user: str) -> None:
    assert sshclient.user_of_image(*words) == user


def machine(volume: dict[str, Any], *, running: bool = True) -> MachineView:
    spec = {"domain": {"devices": {"disks": [{"name": "root"}, {"name": "data"}]}}, "volumes": [{"name": "root", **volume}]}
    data = {"metadata": {"name": "web", "namespace": "lab", "uid": "machine"}}
    vmi = {"metadata": {"name": "web", "namespace": "lab", "uid": "run"}, "spec": spec}
    return MachineView(kind=VM, data=data, vm=data, vmi=vmi if running else None)


def test_host_keys_belong_to_what_keeps_them() -> None:
    assert sshclient.key_uid(machine({"dataVolume": {"name": "root"}})) == "machine"
    # The disk of a container image is made anew for each run, and so are the keys on it.
    assert sshclient.key_uid(machine({"containerDisk": {"image": "x"}})) == "run"
    assert sshclient.key_uid(machine({"containerDisk": {"image": "x"}}, running=False)) == "machine"


def test_the_arguments_of_ssh(tmp_path: Path) -> None:
    target = sshclient.SshTarget(
        name="web",
        namespace="lab",
        uid="u",
        user="ann",
        proxy=("paddock", "forward", "--stdio", "22", "vm/100%"),
        known_hosts=tmp_path / "k h",
    )
    assert sshclient.arguments(target, ["-L", "1:2:3"], ["ls", "-l"], port=2222) == [
        "-oProxyCommand=paddock forward --stdio 2222 vm/100%%",
        "-oHostKeyAlias=paddock-u",
        f'-oUserKnownHostsFile="{tmp_path}/k h"',
        "-oStrictHostKeyChecking=accept-new",
        "-oCheckHostIP=no",
        "-l",
        "ann",
        "-L",
        "1:2:3",
        "web.paddock",
        "--",
        "ls",
        "-l",
    ]


def test_the_same_server_for_another_paddock(tmp_path: Path) -> None:
    options = commandline_options = ["-n", "lab", "--kubeconfig", str(tmp_path / "k"), "--context", "c"]
    parsed = parsed_with(namespace="lab", kubeconfig=tmp_path / "k", context="c")
    assert commandline.server_options(parsed, {"KUBECONFIG": "/other"}) == options == commandline_options
    parsed = parsed_with(namespace="", kubeconfig=None, context="")
    assert commandline.server_options(parsed, {"KUBECONFIG": "/one"}) == ["--kubeconfig", "/one"]
    assert commandline.server_options(parsed, {"KUBECONFIG": "/one:/two"}) == []


def parsed_with(**members: Any) -> Any:
    return type("Parsed", (), members)


@pytest.mark.parametrize(
    ("made", "addresses"),
    [
        ({"type": "ClusterIP", "clusterIP": "10.1.2.3", "ports": [{"port": 80}, {"port": 81}]}, ["10.1.2.3:80", "10.1.2.3:81"]),
        ({"type": "ClusterIP", "clusterIP": "fd00::1", "ports": [{"port": 80}]}, ["[fd00::1]:80"]),
        ({"type": "ClusterIP", "clusterIP": "None", "ports": [{"port": 80}]}, []),
        ({"type": "NodePort", "clusterIP": "10.1.2.3", "ports": [{"port": 80, "nodePort": 30000}]}, ["192.0.2.1:30000"]),
        ({"type": "LoadBalancer", "clusterIP": "10.1.2.3", "ports": [{"port": 80, "nodePort": 30000}]}, []),
    ],
)
def test_the_addresses_of_a_service(made: dict[str, Any], addresses: list[str]) -> None:
    assert exposing.addresses({"spec": made}, ["192.0.2.1"]) == addresses


def test_the_address_of_a_load_balancer() -> None:
    made = {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}
    assert exposing.addresses(made, []) == ["192.0.2.9:80"]


def test_a_viewer_is_found_and_gets_no_secret(tmp_path: Path) -> None:
    found = {"PATH": str(tmp_path), "DISPLAY": ":0"}
    with pytest.raises(NoViewer, match="no VNC viewer"):
        viewers.choose(found)
    for name, words in (("gvncviewer", ["127.0.0.1:101"]), ("vncviewer", ["127.0.0.1::6001"]), ("remote-viewer", ["vnc://127.0.0.1:6001"])):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert viewers.choose(found).command(6001) == [name, *words]
    with pytest.raises(NoViewer, match="no graphical session"):
        viewers.choose({"PATH": str(tmp_path)})


def test_the_end_of_a_log() -> None:
    log = b"one\r\ntwo\nthree"
    assert [guestlogs.tail(log, lines) for lines in (-1, 0, 1, 2, 9)] == [log, b"", b"three", b"two\nthree", log]


def test_a_log_does_nothing_to_a_terminal() -> None:
    log = b"\x1bc\x1b[2J\x1b[01;31mred\x1b[0m\x1b]0;title\x07 \x1b(Bplain\r\n\ttab\x00\x08\xc3\xa4\n"
    assert guestlogs.cleaned(log) == b"red plain\n\ttab\xc3\xa4\n"
