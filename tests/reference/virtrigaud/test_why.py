"""`paddock why` at VMware's simulator of vCenter as it is, and at VirtRigaud's own provider of a libvirtd that is not there."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.hostile import realfaults
from tests.kit.hostile.realfaults import ON_REFERENCE, RealFault, first_answer
from tests.kit.providers import providertls
from tests.reference.client import Api, Json
from tests.reference.embedded import serving
from tests.reference.virtrigaud.programs import theirs
from tests.reference.vsphere.conftest import vcsim
from tests.reference.vsphere.vcenter import PASSWORD, USER, running

# A fixture that pytest finds here.
__all__ = ["vcsim"]
pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the credentials are laid over /etc/virtrigaud"),
]
NOWHERE = "qemu:///system?socket=/nowhere/libvirt-sock"
PLAIN = {"image": "none:1", "service": {"tls": {"enabled": False}}}


def _make(api: Api, body: Json) -> None:
    said = api.request("POST", realfaults.path_of(body), body)
    assert said.ok, said.message


def _secret(api: Api, name: str, **data: str) -> None:
    _make(api, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pdk-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(scope="module")
def kubeconfig(upstream: Path, vcsim: Path) -> Iterator[Path]:
    """The access to a server with every fault."""
    if shutil.which("virsh") is None:
        pytest.skip("needs virsh: VirtRigaud's provider runs it; install libvirt-clients")
    with (
        # The programs of Providers have users of their own, who may not enter pytest's directories.
        _folder() as place,
        running(vcsim, place / "vcsim", {"unaltered": True}) as simulator,
        theirs(upstream / "provider-libvirt", place / "vcsim", environment={"PROVIDER_ENDPOINT": NOWHERE}) as provider,
        serving(place / "server", "--network", "user", "--provider-from", "127.0.0.0/8", command="up") as server,
    ):
        api = Api(server.access)
        trusted = {"username": USER, "ca.crt": simulator.authority}
        _secret(api, "vcenter", password=PASSWORD, **trusted)
        _secret(api, "stranger", password="wrong", **trusted)
        _secret(api, "mistrusted", username=USER, password=PASSWORD, **{"ca.crt": providertls.Authority().pem.decode()})
        found = realfaults.provider("theirs", "libvirt", NOWHERE, "vcenter", runtime=PLAIN)
        found["metadata"]["annotations"] = {"virtrigaud.io/provider-address": provider.address}
        _make(api, found)
        values = {"vcenter": simulator.url}
        common = (realfaults.provider("vcenter", "vsphere", "{vcenter}", "vcenter"), *realfaults.COMMON[2:])
        for fault in (RealFault("", "", "", "", "", common), *ON_REFERENCE):
            for body in fault.manifests({**values, "pool": "/pool", "web": "http://127.0.0.1:1"}):
                _make(api, body)
        yield server.kubeconfig
        api.close()


@pytest.mark.spec("virtrigaud", 176)
@pytest.mark.parametrize("fault", ON_REFERENCE, ids=lambda fault: fault.name)
def test_the_first_answer_is_right(kubeconfig: Path, fault: RealFault) -> None:
    answer = first_answer(kubeconfig, fault.ask)
    assert answer.is_right(fault), answer
