"""The namespace of an ordinary user: what is decided without one."""

import json
import os
from pathlib import Path

import pytest

from paddock.engine import namespace
from paddock.engine.machine.process import boot_id, start_ticks
from paddock.engine.namespace import NoNamespace
from paddock.engine.networks import guestaddresses, hostnetwork, rootless
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.mirror import is_mirrored
from paddock.engine.networks.nics import NicSpec, TrafficLimit


@pytest.fixture(autouse=True)
def never_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user, whatever the user of the tests; what is refused is forgotten."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(hostnetwork, "is_admin", lambda: False)
    monkeypatch.setattr(namespace._State, "refusal", None)


def test_the_uplink_forwards_nothing_inwards_and_reaches_no_loopback() -> None:
    words = rootless.argv("pasta", 7)
    assert "--no-map-gw" in words and words[-2:] == ["--netns", "/proc/7/ns/net"]
    for option in ("--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"):
        assert words[words.index(option) + 1] == "none"


@pytest.mark.parametrize(
    ("setting", "value", "why", "fix"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces is 0", "user.max_user_namespaces=16384"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("other", "0", "this user gets no network namespace (a tap: no)", "run Paddock as root"),
    ],
)
def test_the_setting_that_forbids_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, why: str, fix: str
) -> None:
    path = tmp_path / setting
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")
    monkeypatch.setattr(rootless, "_SETTINGS", tmp_path)
    said = rootless._explained("a tap: no")
    assert why in said.why and fix in said.fix


@pytest.mark.parametrize(("mode", "raises"), [("auto", False), ("rootless", True)])
def test_a_refusal_is_kept_for_user_mode_or_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, raises: bool) -> None:
    monkeypatch.setattr(rootless, "_programs", lambda: NoNamespace("pasta is not installed", "install it"))
    if raises:
        with pytest.raises(NetworkUnusable, match="pasta is not installed; install it, or choose user mode"):
            rootless.enter(tmp_path, mode)
    else:
        rootless.enter(tmp_path, mode)
        assert hostnetwork.why_not_routed() == "pasta is not installed; to lift it: install it"
    assert not any(tmp_path.iterdir())


def test_who_chose_another_mode_gets_no_namespace(tmp_path: Path) -> None:
    rootless.enter(tmp_path, "user")
    assert namespace.refusal() is None and not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "found"), [({}, True), ({"boot": "another"}, False), ({"holder_ticks": 1}, False), ({"holder_ticks": 0}, False)]
)
def test_a_holder_is_known_by_its_start_and_boot(tmp_path: Path, change: dict[str, object], found: bool) -> None:
    pid = os.getpid()
    record = {"boot": boot_id(), "holder": pid, "holder_ticks": start_ticks(pid), **change}
    (tmp_path / "namespace.json").write_text(json.dumps(record))
    assert (rootless._read(tmp_path) is not None) is found


def test_without_a_namespace_a_call_is_a_call() -> None:
    assert namespace.holder() == 0 and namespace.call(os.getpid) == os.getpid()


@pytest.mark.parametrize(
    ("address", "mirrored"),
    [("192.0.2.7", True), ("2001:db8::7", True), ("127.0.0.1", False), ("::1", False), ("169.254.2.2", False), ("fe80::1", False)],
)
def test_addresses_by_which_others_reach_the_host_are_mirrored(address: str, mirrored: bool) -> None:
    assert is_mirrored(address) is mirrored


@pytest.mark.spec("kubevirt", 272)
@pytest.mark.parametrize(
    ("nic", "outside", "running", "expected"),
    [
        (NicSpec("vm", "net"), 1500, 0, 1500),
        (NicSpec("vm", "net"), 1400, 1500, 1400),
        (NicSpec("vm", "net"), 65520, 0, 65520),
        (NicSpec("vm", "net"), 65520, 1500, 1500),
        (NicSpec("vm", "net", model="e1000"), 65520, 0, 1500),
        (NicSpec("vm", "net", traffic=TrafficLimit(to_guest=1000)), 65520, 0, 1500),
    ],
)
def test_a_card_has_the_largest_mtu_that_its_model_its_limits_and_its_guest_permit(
    nic: NicSpec, outside: int, running: int, expected: int
) -> None:
    assert guestaddresses.mtu(nic, outside, running) == expected
