"""Endpoints and credentials."""

import re
from pathlib import Path

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.kinds.provider import ENDPOINT_PATTERN
from paddock_drivers.libvirt import settings
from paddock_drivers.libvirt.settings import LibvirtDriverSettings

FOLDER = Path("/credentials")


def uri(endpoint: str, *files: str, insecure: bool = False, user: str = "") -> str:
    given = dict.fromkeys(files, b"x") | ({"username": user.encode()} if user else {})
    return settings.uri(LibvirtDriverSettings(endpoint=endpoint, credentials=FOLDER, insecure=insecure), given)


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("https://vcenter/sdk", "it has to begin with qemu"),
        ("qemu+ext:///system?command=/bin/sh", "it has to begin with qemu"),
        ("qemu+ssh://a@b/system?command=/bin/sh", "parameter command"),
        ("qemu+ssh://a@b/system?keyfile=/root/.ssh/id", "parameter keyfile"),
        ("qemu+ssh://a@b/system?known_hosts_verify=ignore", "parameter known_hosts_verify"),
        ("qemu://b/system?no_verify=1", "parameter no_verify"),
        ("qemu+ssh://a:secret@b/system", "it holds a password"),
        ("qemu+ssh://b:port/system", "it is no URI"),
    ],
)
def test_an_endpoint_that_would_reach_too_far_is_refused(endpoint: str, why: str) -> None:
    with pytest.raises(ProviderError, match=why) as refused:
        settings.checked_endpoint(endpoint)
    assert refused.value.kind is ErrorKind.INVALID_SPEC and "secret" not in str(refused.value)


def test_ssh_takes_its_key_and_known_hosts_from_the_credentials() -> None:
    found = uri("qemu+ssh://lab/system", "ssh-privatekey", "known_hosts", user="root")
    assert found == (
        "qemu+libssh2://root@lab/system?no_tty=1&keyfile=/credentials/ssh-privatekey&sshauth=privkey"
        "&known_hosts=/credentials/known_hosts&known_hosts_verify=normal"
    )


def test_ssh_by_password_has_no_password_in_its_uri() -> None:
    found = uri("qemu+ssh://root@lab/system", "password", "known_hosts")
    assert "sshauth=password,keyboard-interactive" in found.replace("%2C", ",") and "x" not in found.partition("?")[0]


@pytest.mark.parametrize(("files", "why"), [((), "neither ssh-privatekey nor password"), (("ssh-privatekey",), "no known_hosts")])
def test_ssh_without_what_it_needs_is_unauthorized(files: tuple[str, ...], why: str) -> None:
    with pytest.raises(ProviderError, match=why) as refused:
        uri("qemu+ssh://lab/system", *files)
    assert refused.value.kind is ErrorKind.UNAUTHORIZED


def test_the_only_switch_for_unknown_hosts_is_insecure() -> None:
    assert "known_hosts_verify=ignore" in uri("qemu+ssh://root@lab/system", "ssh-privatekey", insecure=True)
    assert uri("qemu+tls://lab/system", insecure=True) == "qemu+tls://lab/system?no_verify=1"


def test_tls_takes_its_certificates_from_the_credentials() -> None:
    names = ("cacert.pem", "clientcert.pem", "clientkey.pem")
    assert uri("qemu+tls://lab/system", *names) == "qemu+tls://lab/system?pkipath=/credentials"


def test_a_local_endpoint_is_left_as_it_is() -> None:
    assert uri("qemu+unix:///system?socket=/a/b") == "qemu+unix:///system?socket=/a/b"
    assert uri("qemu:///system", "password") == "qemu:///system"


def test_each_documented_endpoint_is_one_that_a_provider_may_have() -> None:
    page = (Path(__file__).parents[4] / "docs/providers/libvirt.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `qemu")]
    words = (("[USER@]", "root@"), ("[:PORT]", ":22"), ("HOST", "kvm1.example"), ("PATH", "/run/libvirt/libvirt-sock"))
    found = re.findall(r"`(qemu[^`]*)`", "".join(row.split("|")[1] for row in rows))
    assert len(found) >= 5
    for endpoint in found:
        for name, value in words:
            endpoint = endpoint.replace(name, value)
        assert re.match(ENDPOINT_PATTERN, endpoint) and settings.checked_endpoint(endpoint) == endpoint, endpoint
