"""Directories of the host behind PersistentVolumes: which are shared, and how."""

from pathlib import PurePath
from typing import Any

import pytest

from paddock.kubernetes.core.storageclass import PROVISIONER
from paddock.kubernetes.storage import binding
from paddock.kubevirt.plan.storage import hostdirectories
from paddock.kubevirt.plan.storage.hostdirectories import HostDirectory, HostImage

ALLOWED = (PurePath("/home/ann/src"), PurePath("/srv/data"))
PRIVATE = (PurePath("/home/ann/src/paddock"),)


def volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/srv"}, "accessModes": ["ReadWriteMany"], **spec}}


@pytest.mark.spec("kubevirt", 134)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/home/ann/src", "keeps its own data in /home/ann/src/paddock"),
        ("/home/ann/src/web", ""),
        ("/srv/data", ""),
        ("/srv/data/deep/below", ""),
        ("/srv", "shares /home/ann/src, /srv/data only; start it with `paddock up --share /srv`"),
        ("/srv/database", "paddock up --share /srv/database"),
        ("/home/ann/.ssh", "paddock up --share /home/ann/.ssh"),
        ("/home/ann/src/paddock", "never shared"),
        ("/home/ann/src/paddock/engine", "never shared"),
        ("/", "belongs to the host's system"),
        ("/etc", "belongs to the host's system"),
        ("/etc/ssh", "belongs to the host's system"),
        ("/proc/1/root", "belongs to the host's system"),
        ("/run/user/0", "belongs to the host's system"),
        ("/sys", "belongs to the host's system"),
        ("/dev/shm", "belongs to the host's system"),
    ],
)
def test_which_directories_are_shared(path: str, text: str) -> None:
    found = hostdirectories.refusal(PurePath(path), ALLOWED, PRIVATE)
    assert text in found and bool(found) == bool(text)


def test_a_server_without_the_option_shares_nothing() -> None:
    assert "shares no directories; start it with" in hostdirectories.refusal(PurePath("/srv/data"), (), ())


def test_what_is_never_shared_is_not_allowed_by_an_option() -> None:
    everything = (PurePath("/"),)
    assert hostdirectories.refusal(PurePath("/srv"), everything, ()) == ""
    assert all(hostdirectories.refusal(each, everything, ()) for each in (PurePath("/"), *hostdirectories.SYSTEM))


@pytest.mark.parametrize(
    ("spec", "directory"),
    [
        ({}, HostDirectory("/srv")),
        ({"hostPath": {"path": "/srv", "type": "Directory"}}, HostDirectory("/srv")),
        ({"accessModes": ["ReadWriteOnce"]}, HostDirectory("/srv")),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteMany"]}, HostDirectory("/srv")),
        ({"accessModes": ["ReadOnlyMany"]}, HostDirectory("/srv", readonly=True)),
        ({"accessModes": []}, HostDirectory("/srv", readonly=True)),
    ],
)
@pytest.mark.spec("kubevirt", 133)
def test_the_directory_of_a_volume(spec: dict[str, Any], directory: HostDirectory) -> None:
    assert hostdirectories.of_volume(volume(**spec)) == directory


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"hostPath": None, "nfs": {"server": "a", "path": "/"}}, "has no hostPath"),
        ({"hostPath": None, "local": {"path": "/etc"}}, "has no hostPath"),
        ({"hostPath": {"path": "/srv", "type": "DirectoryOrCreate"}}, "DirectoryOrCreate"),
        ({"hostPath": {"path": "/dev/sda", "type": "BlockDevice"}}, "BlockDevice"),
        ({"volumeMode": "Block"}, "volumeMode Block"),
        ({"hostPath": {"path": "srv"}}, "no absolute path"),
        ({"hostPath": {"path": "/srv/../etc"}}, "no absolute path without .."),
    ],
)
def test_volumes_that_are_no_directories(spec: dict[str, Any], text: str) -> None:
    found = hostdirectories.of_volume(volume(**spec))
    assert isinstance(found, str) and text in found


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ({}, HostImage("/srv/disk.img", 1 << 30)),
        ({"hostPath": {"path": "/srv/", "type": "DirectoryOrCreate"}}, HostImage("/srv/disk.img", 1 << 30, makes_directory=True)),
        ({"accessModes": ["ReadOnlyMany"]}, HostImage("/srv/disk.img", 1 << 30, readonly=True)),
        ({"hostPath": {"path": "/srv", "type": "Socket"}}, "hostPath.type Socket"),
        ({"hostPath": {"path": "/srv/../etc", "type": "DirectoryOrCreate"}}, "no absolute path without .."),
        ({"volumeMode": "Block"}, "volumeMode Block"),
        ({"capacity": {}}, "no capacity.storage"),
    ],
)
@pytest.mark.spec("kubevirt", 190)
def test_the_disk_image_in_the_directory_of_a_volume(spec: dict[str, Any], image: HostImage | str) -> None:
    found = hostdirectories.image_of_volume(volume(**{"capacity": {"storage": "1Gi"}, **spec}))
    assert image in found if isinstance(found, str) and isinstance(image, str) else found == image


@pytest.mark.spec("kubevirt", 132)
@pytest.mark.parametrize(("named", "static"), [("", False), ("pvc-u", False), ("pvc-other", True), ("pv-1", True), ("src", True)])
def test_which_claims_have_a_volume_of_an_administrator(named: str, *, static: bool) -> None:
    assert hostdirectories.is_static({"metadata": {"uid": "u"}, "spec": {"volumeName": named}}) is static


def test_volumes_of_paddocks_own_are_known() -> None:
    made = {"metadata": {"name": "v", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}}
    assert binding.is_provisioned(made) and not binding.is_provisioned(volume())


@pytest.mark.parametrize(
    ("mode", "owner", "user", "writable"),
    [
        (0o755, 1000, 1000, True),
        (0o555, 1000, 1000, False),
        # Root acts as the owner, who may not write, although root could.
        (0o755, 1000, 0, True),
        (0o555, 1000, 0, False),
        (0o755, 1000, 1001, False),
        (0o757, 1000, 1001, True),
    ],
)
@pytest.mark.spec("kubevirt", 133)
def test_who_writes(mode: int, owner: int, user: int, *, writable: bool) -> None:
    assert hostdirectories.is_writable(mode, owner, user) is writable
