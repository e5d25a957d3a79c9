"""The guest's documents: written in the machine, in Secrets, and in both."""

import pytest

from paddock.dialects.virtrigaud.kinds import userdata
from paddock.dialects.virtrigaud.translate import MissingReference
from tests.unit.dialects.virtrigaud.translate.making import Changes, Made, Scene, at, made, plain, secret

VOLUME = "spec.template.spec.volumes.1"
INLINE = "#cloud-config\na: b\n"
SECRET = "#!/bin/sh\ntrue\n"
REF = {"secretRef": {"name": "docs"}}


def cloud_init(**given: object) -> dict[str, dict[str, object]]:
    return {"VirtualMachine": {".userData": {"cloudInit": given}}}


def volume(result: Made) -> object:
    return at(plain(result.machine), VOLUME)


def test_a_secret_that_kubevirt_reads_is_named() -> None:
    result = made(cloud_init(**REF), secret("docs", userdata=SECRET))
    assert volume(result) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "docs"}}}
    assert result.secrets == {}
    assert result.losses == ()


@pytest.mark.parametrize("key", ["user-data", "cloud-init", "cloud-config"])
def test_a_secret_under_another_key_is_copied(key: str) -> None:
    result = made(cloud_init(**REF), secret("docs", **{key: SECRET, "zzz": "other"}))
    assert volume(result) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
    assert result.secrets == {"web-cloudinit": {"userdata": SECRET.encode()}}
    assert result.resources[0].metadata.annotations == {"virtrigaud.io/secret": '{"name":"docs"}'}
    assert result.losses == ()


@pytest.mark.spec("virtrigaud", 48)
def test_the_first_key_counts() -> None:
    result = made(cloud_init(**REF), secret("docs", **{"cloud-config": "late", "user-data": "early"}))
    assert result.secrets["web-cloudinit"]["userdata"] == b"early"


@pytest.mark.spec("virtrigaud", 48)
def test_both_documents_become_one() -> None:
    result = made(cloud_init(inline=INLINE, **REF), secret("docs", userdata=SECRET))
    assert volume(result) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
    assert result.secrets == {"web-cloudinit": {"userdata": userdata.merged(INLINE.encode(), SECRET.encode())}}
    assert result.losses == ()


@pytest.mark.parametrize(("length", "inline"), [(2048, True), (2049, False)])
def test_a_long_document_goes_into_a_secret(length: int, inline: bool) -> None:
    text = "#" * length
    result = made(cloud_init(inline=text))
    if inline:
        assert at(volume(result), "cloudInitNoCloud.userData") == text
        assert result.secrets == {}
    else:
        assert at(volume(result), "cloudInitNoCloud.secretRef.name") == "web-cloudinit"
        assert result.secrets == {"web-cloudinit": {"userdata": text.encode()}}
        assert result.resources[0].metadata.annotations is None


def test_long_network_data_goes_into_a_secret() -> None:
    servers = ",".join(f"10.0.{index // 200}.{index % 200}" for index in range(300))
    card = {"name": "eth0", "networkRef": {"name": "lan"}, "ipAddress": "10.0.0.5", "dns": servers}
    result = made({"VirtualMachine": {".networks": [card]}})
    assert at(volume(result), "cloudInitNoCloud.networkDataSecretRef.name") == "web-cloudinit"
    assert list(result.secrets["web-cloudinit"]) == ["networkdata"]


def test_a_missing_secret() -> None:
    field = "spec.userData.cloudInit.secretRef.name"
    with pytest.raises(MissingReference) as caught:
        Scene(cloud_init(**REF)).translated(complete=True)
    assert (caught.value.kind, caught.value.name) == ("Secret", "docs")
    alone = made(cloud_init(**REF))
    assert alone.lost() == [("VirtualMachine/web", field)]
    assert volume(alone) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "docs"}}}
    both = made(cloud_init(inline=INLINE, **REF))
    assert both.lost() == [("VirtualMachine/web", field)]
    assert volume(both) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": INLINE}}


def test_a_secret_without_the_keys() -> None:
    result = made(cloud_init(inline=INLINE, **REF), secret("docs", other="x"))
    assert result.lost() == [("VirtualMachine/web", "spec.userData.cloudInit.secretRef")]
    assert "none of the keys userdata, user-data, cloud-init, cloud-config" in result.losses[0].why
    assert volume(result) == {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": INLINE}}


@pytest.mark.spec("virtrigaud", 48)
@pytest.mark.parametrize(("key", "copied"), [("userdata", False), ("ignition", True), ("config.ign", True), ("user-data", True)])
def test_ignition_from_a_secret(key: str, copied: bool) -> None:
    changes = {"VirtualMachine": {".userData.ignition": REF}}
    result = made(changes, secret("docs", **{key: '{"ignition": {}}'}))
    name = "web-cloudinit" if copied else "docs"
    assert volume(result) == {"name": "cloudinitdisk", "cloudInitConfigDrive": {"secretRef": {"name": name}}}
    assert result.losses == ()


def test_ignition_without_its_secret() -> None:
    changes = {"VirtualMachine": {".userData.ignition": REF}}
    absent = made(changes)
    assert absent.lost() == [("VirtualMachine/web", "spec.userData.ignition.secretRef.name")]
    empty = made(changes, secret("docs", other="x"))
    assert empty.lost() == [("VirtualMachine/web", "spec.userData.ignition.secretRef")]
    assert volume(empty) is None


@pytest.mark.parametrize("key", ["metadata", "meta-data", "meta_data"])
def test_metadata_from_a_secret(key: str) -> None:
    changes = {"VirtualMachine": {".metaData.cloudInit": {"inline": "role: db", **REF}}}
    result = made(changes, secret("docs", **{key: "local-hostname: db-1"}))
    assert result.machine.spec.template.spec.hostname == "db-1"
    assert result.lost() == [("VirtualMachine/web", "spec.metaData.cloudInit")]


def test_metadata_that_explodes_is_not_read() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nlocal-hostname: db\n"
    result = made({"VirtualMachine": {".metaData.cloudInit.inline": bomb}})
    assert result.machine.spec.template.spec.hostname is None


def test_secrets_are_never_told() -> None:
    changes: dict[str, Changes] = {
        "VirtualMachine": {
            ".userData.cloudInit": {"inline": "hunter2-inline", **REF},
            ".metaData.cloudInit": {"inline": "hunter2: x", **REF},
        },
        "VMImage": {".source": {"vsphere": {"templateName": "t"}, "http": {"url": "http://x.example.com", "headers": {"Auth": "hunter2"}}}},
        "Provider": {".type": "vsphere", ".endpoint": "https://v"},
    }
    result = made(changes, secret("docs", other="hunter2"))
    assert result.losses != ()
    assert "hunter2" not in str(result.losses)
    # The image's http block is used. When another one is, its headers are lost and not shown either.
    changes["Provider"] = {".type": "libvirt", ".endpoint": "qemu:///system"}
    changes["VMImage"][".source"] = {"libvirt": {"url": "http://y.example.com"}, **changes["VMImage"][".source"]}
    lost = made(changes, secret("docs", other="hunter2"))
    assert lost.loss("VMImage/debian", "spec.source.http").value == {"url": "http://x.example.com", "headers": "(not shown)"}
