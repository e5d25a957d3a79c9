"""The content of the disks for cloud-init, sysprep and configuration, as the specification has it."""

import json
from collections.abc import Callable, Mapping

import pytest

from paddock.base.seeds import configdrive, configfiles, nocloud, seed, sysprep
from paddock.base.seeds.configdrive import TaggedDevice
from paddock.base.seeds.errors import SeedError
from paddock.base.seeds.seed import Seed, SeedIdentity, Texts
from paddock.kubernetes import admission
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.base.seeds.reader import Iso

UUID = "6f1a4a8e-5f0b-5f5e-9a64-0f1a9d3a2b11"
KEYS = ("ssh-ed25519 AAAA one", "ssh-rsa BBBB two")
GUEST = SeedIdentity(uuid=UUID, name="web.shop", hostname="web", instance_type="large", public_keys=KEYS)
USER = b"#cloud-config\nruncmd: [true]\n"
NETWORK = b"version: 2\n"


def on_disk(made: Seed) -> tuple[str, dict[str, bytes]]:
    """The label and the files, read from the image."""
    image = Iso(made.image())
    found = image.rock_ridge()
    assert found == image.with_joliet()
    return image.label(), found


@pytest.mark.spec("kubevirt", 75)
def test_nocloud() -> None:
    label, files = on_disk(nocloud.seed(GUEST, Texts(USER, NETWORK)))
    assert label == "cidata"
    assert json.loads(files.pop("meta-data")) == {
        "instance-type": "large",
        "instance-id": UUID,
        "local-hostname": "web",
        "public-keys": {"0": KEYS[0], "1": KEYS[1]},
    }
    assert files == {"user-data": USER, "network-config": NETWORK}


@pytest.mark.spec("kubevirt", 75)
def test_nocloud_says_nothing_that_is_not_so() -> None:
    _, files = on_disk(nocloud.seed(SeedIdentity(uuid=UUID, name="web.shop"), Texts()))
    assert {name: data.decode() for name, data in files.items()} == {"meta-data": f'{{"instance-id": "{UUID}"}}', "user-data": ""}


@pytest.mark.spec("kubevirt", 75)
def test_configdrive() -> None:
    nic = TaggedDevice("nic", "0000:01:00.0", ("internal",), mac="02:00:00:00:00:01")
    label, files = on_disk(configdrive.seed(GUEST, Texts(USER, NETWORK), [nic, TaggedDevice("hostdev", "0000:02:00.0")]))
    assert label == "config-2"
    assert json.loads(files.pop("openstack/latest/meta_data.json")) == {
        "instance_type": "large",
        "instance_id": "web.shop",
        "hostname": "web",
        "local_hostname": "web",
        "uuid": UUID,
        "devices": [
            {"type": "nic", "bus": "pci", "address": "0000:01:00.0", "mac": "02:00:00:00:00:01", "tags": ["internal"]},
            {"type": "hostdev", "bus": "pci", "address": "0000:02:00.0", "tags": []},
        ],
        "public_keys": {"0": KEYS[0], "1": KEYS[1]},
    }
    assert files == {"openstack/latest/user_data": USER, "openstack/latest/network_data.json": NETWORK}


@pytest.mark.spec("kubevirt", 75)
@pytest.mark.parametrize("make", [nocloud.seed, configdrive.seed])
def test_the_same_guest_gets_the_same_disk(make: Callable[[SeedIdentity, Texts], Seed]) -> None:
    assert make(GUEST, Texts(USER, NETWORK)).image() == make(GUEST, Texts(USER, NETWORK)).image()


@pytest.mark.spec("kubevirt", 75)
@pytest.mark.parametrize(
    ("read", "secret"),
    [
        (seed.user_data, {"userdata": b"x", "other": b"y"}),
        (seed.user_data, {"userData": b"x"}),
        (seed.user_data, {"userData": b"y", "userdata": b"x"}),
        (seed.network_data, {"networkdata": b"x"}),
        (seed.network_data, {"networkData": b"x"}),
    ],
)
def test_both_spellings_of_a_secrets_keys(read: Callable[[Mapping[str, bytes]], bytes], secret: dict[str, bytes]) -> None:
    assert read(secret) == b"x"


@pytest.mark.spec("kubevirt", 75)
@pytest.mark.parametrize("read", [seed.user_data, seed.network_data])
def test_a_secret_without_the_key_is_said(read: Callable[[Mapping[str, bytes]], bytes]) -> None:
    with pytest.raises(SeedError, match="has no key"):
        read({"other": b""})


@pytest.mark.spec("kubevirt", 75)
@pytest.mark.parametrize("source", ["cloudInitNoCloud", "cloudInitConfigDrive"])
@pytest.mark.parametrize("member", ["userData", "networkData"])
def test_inline_data_ends_at_2048_bytes(source: str, member: str) -> None:
    def errors(length: int) -> list[str]:
        spec = {
            "domain": {"devices": {"disks": [{"name": "seed", "disk": {}}]}, "memory": {"guest": "1Gi"}},
            "volumes": [{"name": "seed", source: {"userData": "x", member: "x" * length}}],
        }
        manifest = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": spec}
        findings = admission.admit(manifest, AdmissionSettings()).findings
        return [found.message for found in findings if found.severity is Severity.ERROR]

    assert errors(2048) == []
    assert any("2048 byte limit" in message for message in errors(2049))


def test_keys_of_a_secret() -> None:
    secret = {"b": b"ssh-rsa BBBB two\n", "a": b"# mine\n\nssh-ed25519 AAAA one\r\nssh-rsa BBBB two\n"}
    assert seed.public_keys(secret) == KEYS
    assert seed.passwords({"fedora": b"pa ss\n", "root": b"x"}) == {"fedora": "pa ss", "root": "x"}


@pytest.mark.spec("kubevirt", 76)
@pytest.mark.parametrize("name", ["autounattend.xml", "unattend.xml", "Autounattend.xml"])
def test_sysprep(name: str) -> None:
    assert on_disk(sysprep.seed({name: b"<unattend/>", "setup.ps1": b"dir"})) == ("unattendCD", {name: b"<unattend/>", "setup.ps1": b"dir"})


@pytest.mark.spec("kubevirt", 76)
def test_sysprep_needs_an_answer_file() -> None:
    with pytest.raises(SeedError, match=r"unattend\.xml"):
        sysprep.seed({"answers.xml": b""})


@pytest.mark.spec("kubevirt", 76)
def test_files_of_configuration() -> None:
    config = configfiles.config_map({"app.conf": "grün = 1\n", "k" * 253: "long"}, {"logo.png": b"\x89PNG\0"})
    assert Iso(config.image()).label() == "cfgdata"
    assert Iso(config.image()).rock_ridge() == {"app.conf": "grün = 1\n".encode(), "k" * 253: b"long", "logo.png": b"\x89PNG\0"}
    assert on_disk(configfiles.secret({"password": b"x\0y"}, "keys")) == ("keys", {"password": b"x\0y"})
    account = {"namespace": b"shop", "token": b"ey.J", "ca.crt": b"PEM"}
    assert on_disk(configfiles.service_account("shop", "ey.J", b"PEM")) == ("cfgdata", account)
    assert on_disk(configfiles.downward({"labels": b"", "pod/name": b"web"}, "facts")) == ("facts", {"labels": b"", "pod/name": b"web"})
