"""DataSources with addresses on a whole host: when disks are made, of what, and what everybody says meanwhile."""

import asyncio
import base64
from itertools import groupby

import pytest

from paddock.base.images.errors import ImageRefused, ImageUnavailable
from tests.coroutines import played
from tests.kit.engine.enginefakes import EveryStart
from tests.kit.engine.fakehost import GIB, FakeHost
from tests.kit.servers.imageserver import authority
from tests.scenario.fronts.kubermatic.making import (
    CDI,
    URL,
    Data,
    condition,
    machine,
    ready,
    resolved,
    settle,
    source,
    template,
    volume,
)

OTHER = "http://images/other.qcow2"
SECRETS = "/api/v1/namespaces/default/secrets"


def secret(name: str, namespace: str = "default", **values: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": values}


@pytest.mark.spec("kubermatic", 25)
@played
async def test_a_plain_address_is_ready(host: FakeHost, /) -> None:
    await host.make(source())
    await settle(2)
    assert await ready(host) == ("True", "Ready")
    assert (await host.get("DataSource", CDI, "image"))["status"]["source"] == {"http": {"url": URL}}


@pytest.mark.spec("kubermatic", 26)
@played
async def test_a_claim_that_is_not_there_is_said(host: FakeHost, /) -> None:
    await host.make({**source(), "spec": {"source": {"pvc": {"namespace": "default", "name": "golden"}}}})
    await settle(2)
    assert await ready(host) == ("False", "NotFound")


@played
async def test_an_address_is_ready_when_all_that_it_refers_to_can_be_used(host: FakeHost, /) -> None:
    root, issue = authority()
    client = issue("client")
    both = {"secretRef": {"name": "client"}}
    https = "https://images/a"
    await host.make(
        source("account", secretRef="account"),
        source("headers", secretExtraHeaders=["account"]),
        source("roots", https, certConfigMap="roots"),
        source("authority", https, certConfig={"secretRef": {"name": "authority"}}),
        source("mutual", https, certConfig={"cert": both, "key": both}),
        source("bundle", https, certConfig={"caBundle": base64.b64encode(root.certificate.encode()).decode()}),
    )
    await settle(2)
    found = {name: await ready(host, name) for name in ("account", "headers", "roots", "authority", "mutual", "bundle")}
    assert found == {
        "account": ("False", "SecretNotFound"),
        "headers": ("False", "SecretNotFound"),
        "roots": ("False", "ConfigMapNotFound"),
        "authority": ("False", "SecretNotFound"),
        "mutual": ("False", "SecretNotFound"),
        "bundle": ("True", "Ready"),
    }
    await host.make(
        secret("account", accessKeyId="ada", secretKey="s3cret"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "roots"}, "data": {"ca.crt": "nonsense"}},
        secret("authority", **{"ca.pem": "nonsense"}),
        secret("client", cert=client.certificate, key="nonsense"),
    )
    await settle(2)
    assert await ready(host, "account") == await ready(host, "headers") == ("True", "Ready")
    assert {await ready(host, name) for name in ("roots", "authority", "mutual")} == {("False", "InvalidCertificate")}
    said = await condition(host, "DataSource", CDI, "mutual", "Ready")
    assert said["message"] == "the Secret client has no PEM private key in tls.key or key"
    for path, change in (
        ("/api/v1/namespaces/default/configmaps/roots", {"data": {"ca.crt": root.certificate}}),
        (f"{SECRETS}/authority", {"stringData": {"ca.pem": root.certificate}}),
        (f"{SECRETS}/client", {"stringData": {"key": client.key}}),
    ):
        assert (await host.api.merge(path, change)).status == 200
    await settle(2)
    assert {await ready(host, name) for name in ("roots", "authority", "mutual")} == {("True", "Ready")}
    await host.delete("Secret", "v1", "account")
    await settle(2)
    assert await ready(host, "account") == ("False", "SecretNotFound")


@pytest.mark.spec("kubermatic", 23)
@played
async def test_certificates_are_used_by_the_import(host: FakeHost, /) -> None:
    root, issue = authority()
    client = issue("client")
    https = "https://images/a"
    host.engine.images.offer(https)
    both = {"secretRef": {"name": "client"}}
    config = {"caBundle": root.certificate, "secretRef": {"name": "more"}, "cert": both, "key": both}
    await host.make(
        secret("client", cert=client.certificate, key=client.key),
        secret("more", caBundle=base64.b64encode(root.certificate.encode()).decode()),
        source(url=https, certConfig=config),
        machine(),
    )
    await host.running()
    trust = host.engine.images.sources[-1].trust  # type: ignore[union-attr]
    assert (trust.certificate, trust.key) == (client.certificate.strip(), client.key.strip())
    assert trust.ca.count("BEGIN CERTIFICATE") == 2


@pytest.mark.spec("kubermatic", 27)
@played
async def test_a_machine_waits_for_its_data_source(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    await host.make(machine())
    await settle(120)
    assert await resolved(host) == ("False", "DataSourceNotFound")
    assert await volume(host) == {} and await host.vmi() == {}
    await host.make(source())
    await host.running(seconds=5)
    assert await resolved(host) == ("True", "Resolved")


@played
async def test_a_machine_waits_for_what_its_data_source_needs(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    await host.make(source(secretRef="account"), source("chain"))
    change = {"spec": {"source": {"http": None, "dataSource": {"name": "image", "namespace": "default"}}}}
    assert (await host.api.merge(host.place("DataSource", CDI, name="chain"), change)).status == 200
    await host.make(machine(), machine("chained", disk="other", of="chain"))
    await settle(30)
    assert await resolved(host) == await resolved(host, "chained") == ("False", "DataSourceNotReady")
    assert await volume(host) == {} == await volume(host, "other")
    await host.make(secret("account", accessKeyId="ada", secretKey="s3cret"))
    await host.running(seconds=5)
    await host.running("chained", seconds=1)
    assert await resolved(host) == await resolved(host, "chained") == ("True", "Resolved")


@pytest.mark.spec("kubermatic", 28)
@pytest.mark.spec("kubermatic", 29)
@played
async def test_what_becomes_of_a_data_source_is_for_new_disks(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    host.engine.images.offer(OTHER)
    host.engine.images.script(URL, [ImageUnavailable("Unreachable", "not now")])
    await host.make(source(), machine("one", disk="first"))
    await settle(3)
    # It is being tried again, and goes on with the address that it was made with.
    assert (await host.api.merge(host.place("DataSource", CDI, name="image"), {"spec": {"source": {"http": {"url": OTHER}}}})).status == 200
    await host.make(machine("two", disk="second"))
    await host.running("two")
    one = await host.running("one", seconds=20)
    urls = [(await volume(host, name))["spec"]["source"]["http"]["url"] for name in ("first", "second")]
    assert urls == [URL, OTHER]
    assert host.engine.images.fetched == {URL: 2, OTHER: 1}
    assert (await volume(host, "first"))["metadata"]["annotations"]["virtualization.k8c.io/data-source"] == "default/image"
    await host.delete("DataSource", CDI, "image")
    await settle(120)
    assert await host.running("one", seconds=0) is one and await resolved(host, "one") == ("True", "Resolved")
    await host.make(machine("three", disk="third"))
    await settle(5)
    assert await resolved(host, "three") == ("False", "DataSourceNotFound")


@pytest.mark.spec("kubermatic", 30)
@played
async def test_a_data_source_of_another_namespace(host: FakeHost, /) -> None:
    root, _ = authority()
    await host.api.namespace("images")
    https = "https://images/a"
    for url in (URL, https):
        host.engine.images.offer(url)
    roots = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "roots", "namespace": "images"}}
    await host.make(
        source(namespace="images"),
        source("bundle", https, namespace="images", certConfig={"caBundle": root.certificate}),
        {**roots, "data": {"ca.crt": root.certificate}},
        source("roots", https, namespace="images", certConfigMap="roots"),
        secret("account", "images", accessKeyId="ada", secretKey="s3cret"),
        source("secret", namespace="images", secretRef="account"),
    )
    for name in ("image", "bundle", "roots", "secret"):
        await host.make(machine(name, disk=f"{name}-disk", of=name, namespace="images"))
    for name in ("image", "bundle", "roots"):
        await host.running(name)
    trusted = [each.trust.ca.strip() for each in host.engine.images.sources if each.url == https]  # type: ignore[union-attr]
    assert trusted == [root.certificate.strip()] * 2
    await settle(60)
    assert await resolved(host, "secret") == ("False", "CrossNamespaceSecret")
    assert await volume(host, "secret-disk") == {}
    # The same as a DataVolume of its own: it says so and is not filled.
    spec = machine(of="secret", namespace="images")["spec"]["dataVolumeTemplates"][0]["spec"]
    await host.make({"apiVersion": CDI, "kind": "DataVolume", "metadata": {"name": "alone"}, "spec": spec})
    await settle(5)
    assert (await condition(host, "DataVolume", CDI, "alone", "Running"))["reason"] == "CrossNamespaceSecret"
    assert await host.get("PersistentVolumeClaim", "v1", "alone") == {}


@pytest.mark.spec("kubermatic", 31)
@played
async def test_nothing_is_downloaded_before_the_first_start_unless_the_user_says_so(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    eager = machine("eager", "Halted", "other")
    eager["metadata"]["annotations"] = {"kubevirt.io/immediate-data-volume-creation": "true"}
    await host.make(source(), machine(strategy="Halted"), eager)
    await settle(120)
    assert await volume(host) == {} and await host.status() == "Stopped" and await resolved(host) == ("True", "Resolved")
    assert (await volume(host, "other"))["status"]["phase"] == "Succeeded" and await host.vmi("eager") == {}
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await host.running()
    assert (await volume(host))["status"]["phase"] == "Succeeded"


@pytest.mark.spec("kubermatic", 32)
@played
async def test_disks_go_with_their_machine_and_the_data_source_stays(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    await host.make(source(), machine())
    await host.running()
    disk, claim = await volume(host), await host.get("PersistentVolumeClaim", "v1", "disk")
    owners = [each["metadata"]["ownerReferences"][0] for each in (disk, claim)]
    assert [(each["kind"], each["uid"], each["controller"]) for each in owners] == [
        ("VirtualMachine", (await host.vm())["metadata"]["uid"], True),
        ("DataVolume", disk["metadata"]["uid"], True),
    ]
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await settle(60)
    assert await host.vm() == await volume(host) == await host.get("PersistentVolumeClaim", "v1", "disk") == {}
    assert not host.engine.volumes.volumes
    assert await host.get("DataSource", CDI, "image") != {}


@pytest.mark.spec("kubermatic", 33)
@played
async def test_the_phases_of_an_import(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    host.engine.images.hold(URL, *(number / 10 for number in range(10)))
    # As many imports as run at a time, so that this one has to wait for its turn.
    host.engine.images.offer(OTHER)
    host.engine.images.hold(OTHER)
    for number in range(4):
        spec = {"source": {"http": {"url": OTHER}}, "pvc": template()["spec"]["pvc"]}
        await host.make({"apiVersion": CDI, "kind": "DataVolume", "metadata": {"name": f"other-{number}"}, "spec": spec})
    await settle(5)
    words: list[str] = []
    seen: list[Data] = []
    async with (
        host.api.watch("/apis/cdi.kubevirt.io/v1beta1/datavolumes?watch=true&fieldSelector=metadata.name%3Ddisk") as volumes,
        host.api.watch("/apis/kubevirt.io/v1/virtualmachines?watch=true") as machines,
    ):
        await host.make(source(), machine())
        await settle(5)
        host.engine.images.release(OTHER)
        await settle(20)
        assert await host.status() == "Provisioning"
        host.engine.machines.held = starts = EveryStart()
        host.engine.images.release(URL)
        await settle(20)
        for each in tuple(starts.keys()):
            host.engine.machines.release(each)
        await host.running()
        while not await volumes.quiet():
            seen.append((await volumes.next())["object"].get("status") or {})
        while not await machines.quiet():
            word = (await machines.next())["object"].get("status", {}).get("printableStatus", "")
            words += [word] if word and word not in words[-1:] else []
    phases = [each["phase"] for each in seen if each.get("phase")]
    assert [phase for phase, _ in groupby(phases)] == ["Pending", "ImportScheduled", "ImportInProgress", "Succeeded"]
    progress = [float(each["progress"].removesuffix("%")) for each in seen if each.get("progress", "N/A") != "N/A"]
    assert progress == sorted(progress) and len(set(progress)) >= 5 and progress[-1] == 100.0
    assert words == ["Provisioning", "Starting", "Running"]


@pytest.mark.spec("kubermatic", 34)
@played
async def test_an_image_that_is_too_large_fails_with_both_sizes(host: FakeHost, /) -> None:
    host.engine.images.offer(URL, virtual_size=20 * GIB)
    await host.make(source(), machine(size="10Gi"))
    await settle(60)
    assert (await volume(host))["status"]["phase"] == "Failed"
    said = (await condition(host, "DataVolume", CDI, "disk", "Running"))["message"]
    assert "the image needs 20Gi, the volume has 10Gi" in said
    assert await host.status() == "DataVolumeError" and host.engine.images.fetched[URL] == 1


@pytest.mark.spec("kubermatic", 36)
@played
async def test_what_fails_for_good_and_what_is_tried_again(host: FakeHost, /) -> None:
    await host.make(source("gone"), machine("gone", disk="gone-disk", of="gone"))
    host.engine.images.offer(OTHER)
    host.engine.images.script(OTHER, [ImageUnavailable("Unreachable", "the server said 503")] * 3)
    await host.make(source("busy", OTHER), machine("busy", disk="busy-disk", of="busy"))
    await settle(15)
    assert (await volume(host, "gone-disk"))["status"]["phase"] == "Failed"
    assert host.engine.images.fetched[URL] == 1
    waiting = (await volume(host, "busy-disk"))["status"]
    assert waiting["phase"] == "ImportInProgress" and waiting["restartCount"] >= 1
    await settle(120)
    done = (await volume(host, "busy-disk"))["status"]
    assert (done["phase"], done["restartCount"]) == ("Succeeded", 3)
    assert await host.status("busy") == "Running" and await host.status("gone") == "DataVolumeError"


@pytest.mark.spec("kubermatic", 24)
@played
async def test_a_wrong_sum_fails_the_import(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    host.engine.images.script(URL, [ImageRefused("Checksum", "the checksum is another")])
    await host.make(source(checksum=f"sha256:{'0' * 64}"), machine())
    await settle(30)
    assert host.engine.images.sources[-1].checksum == f"sha256:{'0' * 64}"  # type: ignore[union-attr]
    assert (await volume(host))["status"]["phase"] == "Failed"
    refused = await host.api.post(host.place("DataSource", CDI), source("bad", checksum="sha256:zz"))
    assert refused.status == 422 and "spec.source.http.checksum" in refused.causes


@pytest.mark.spec("kubermatic", 37)
@played
async def test_each_machine_downloads_unless_the_image_is_to_be_kept(host: FakeHost, /) -> None:
    for url in (URL, OTHER):
        host.engine.images.offer(url, virtual_size=GIB)
    await host.make(source(), source("kept", OTHER, cached=True))
    for name in ("one", "two"):
        await host.make(machine(name, disk=f"{name}-disk"))
        await host.running(name)
    assert host.engine.images.fetched[URL] == 2
    assert await volume(host, "kept-golden") == {}
    await host.make(*(machine(name, disk=f"{name}-disk", of="kept") for name in ("three", "four")))
    for name in ("three", "four"):
        await host.running(name, seconds=30)
    await host.make(machine("five", disk="five-disk", of="kept"))
    await host.running("five")
    assert host.engine.images.fetched[OTHER] == 1
    golden = (await host.get("PersistentVolumeClaim", "v1", "kept-golden"))["metadata"]["uid"]
    claims = [await host.get("PersistentVolumeClaim", "v1", f"{name}-disk") for name in ("three", "four", "five")]
    assert [host.engine.volumes.content[each["metadata"]["uid"]] for each in claims] == [f"copy of {golden}"] * 3
    # Another address is another image, for what is made from now on.
    assert (await host.api.merge(host.place("DataSource", CDI, name="kept"), {"spec": {"source": {"http": {"url": URL}}}})).status == 200
    await settle(30)
    await host.make(machine("six", disk="six-disk", of="kept"))
    await host.running("six", seconds=30)
    assert (await volume(host, "kept-golden"))["spec"]["source"]["http"]["url"] == URL
    # The copy goes with the DataSource, and what was copied stays.
    await host.delete("DataSource", CDI, "kept")
    await settle(30)
    assert await volume(host, "kept-golden") == {} and await host.status("three") == "Running"


@played
async def test_a_copy_does_not_take_the_name_of_a_stranger(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    blank = {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    await host.make({"apiVersion": CDI, "kind": "DataVolume", "metadata": {"name": "image-golden"}, "spec": blank})
    await host.make(source(cached=True), machine())
    await settle(20)
    assert (await volume(host, "image-golden"))["spec"] == blank
    assert "NameConflict" in await host.events("image", "DataSource")


@pytest.mark.spec("kubermatic", 74)
@played
async def test_a_disk_that_is_deleted_comes_again_with_the_next_start(host: FakeHost, /) -> None:
    host.engine.images.offer(URL)
    await host.make(source(), machine(strategy="Always"))
    ran = await host.running()
    before = (await volume(host))["metadata"]["uid"]
    await host.delete("DataVolume", CDI, "disk")
    await settle(300)
    assert await host.running(seconds=0) is ran and await volume(host) == {} and host.engine.images.fetched[URL] == 1
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await settle(60)
    assert await host.status() == "Stopped" and await volume(host) == {}
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    assert (await host.running(seconds=30)).id != ran.id
    assert (await volume(host))["metadata"]["uid"] != before and host.engine.images.fetched[URL] == 2


@played
async def test_a_condition_goes_with_what_it_is_about(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Halted"))
    await settle(3)
    assert await resolved(host) == ("False", "DataSourceNotFound")
    blank = {
        "metadata": {"name": "disk"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
    await host.change("web", {"spec": {"dataVolumeTemplates": [blank]}})
    await asyncio.sleep(3)
    assert await resolved(host) == ("", "")
