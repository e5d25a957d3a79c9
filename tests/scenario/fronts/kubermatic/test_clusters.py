"""Kubermatic's forms for a cluster: two servers, one with what users wrote and one with what KubeVirt and CDI take."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.coroutines import played
from tests.kit.servers.imageserver import authority
from tests.scenario.fronts.kubermatic.clusters import MANAGER, Cluster
from tests.scenario.fronts.kubermatic.making import CDI, POOL, URL, Data, identities, machine, names, pool, settle, source

VM, KUBEVIRT = "VirtualMachine", "kubevirt.io/v1"
OTHER = "http://images/other.qcow2"
Script = Callable[[Cluster], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with a fresh cluster and its front."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Cluster(tmp_path) as cluster:
                for url in (URL, OTHER):
                    cluster.host.engine.images.offer(url)
                await script(cluster)

        return virtualtime.run(inside())

    return run


def secret(name: str, **values: str) -> Data:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def applied_by_us(found: Data) -> bool:
    return any((each["manager"], each["operation"]) == (MANAGER, "Apply") for each in found["metadata"]["managedFields"])


async def readdress(cluster: Cluster, url: str, name: str = "image") -> None:
    await cluster.change("DataSource", CDI, name, {"spec": {"source": {"http": {"url": url}}}})
    await settle(5)


@pytest.mark.spec("kubermatic", 25)
@pytest.mark.spec("kubermatic", 27)
@played
async def test_a_machine_is_held_back_until_its_data_source_comes(it: Cluster, /) -> None:
    await it.write(machine())
    await settle(120)
    assert await it.resolved() == ("False", "DataSourceNotFound")
    assert await it.host.vm() == {} and (await it.seen(VM, KUBEVIRT, "web"))["status"]["printableStatus"] == "Provisioning"
    await it.write(source())
    await settle(20)
    assert await it.condition("DataSource", CDI, "image", "Ready") == ("True", "Ready")
    assert await it.resolved() == ("True", "Resolved")
    there = await it.host.vm()
    (template,) = there["spec"]["dataVolumeTemplates"]
    assert template["spec"]["source"] == {"http": {"url": URL}} and "sourceRef" not in template["spec"]
    assert template["metadata"]["annotations"] == {"virtualization.k8c.io/data-source": "default/image"}
    assert there["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "paddock"}
    (noted,) = [each for each in there["metadata"]["managedFields"] if each["manager"] == MANAGER]
    assert noted["fieldsV1"]["f:metadata"]["f:annotations"] == {"f:kubevirt.io/immediate-data-volume-creation": {}}
    assert applied_by_us(there) and "ownerReferences" not in there["metadata"]
    # Nothing is made of the DataSource itself, and what the cluster says comes back word for word.
    assert await it.host.get("DataSource", CDI, "image") == {}
    status = (await it.seen(VM, KUBEVIRT, "web"))["status"]
    assert status["printableStatus"] == there["status"]["printableStatus"] == "Running"
    ours = [each for each in status["conditions"] if each["type"] == "DataSourceResolved"]
    assert [each for each in status["conditions"] if each not in ours] == there["status"]["conditions"]
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        name: value for name, value in there["status"].items() if name != "conditions"
    }
    # The user's own words stay as they are.
    written = await it.seen(VM, KUBEVIRT, "web")
    assert written["spec"]["dataVolumeTemplates"] == machine()["spec"]["dataVolumeTemplates"]


@pytest.mark.spec("kubermatic", 28)
@played
async def test_another_address_is_for_new_disks_and_no_pool_is_made_anew(it: Cluster, /) -> None:
    await it.write(source(), machine("one"), machine("halted", "Halted", "later"), pool(2))
    await settle(60)
    before = await identities(it.host)
    assert len(before) == 4
    await readdress(it, OTHER)
    await settle(120)
    assert await identities(it.host) == before

    async def url(name: str) -> str:
        return str((await it.host.vm(name))["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]["url"])

    # The machine whose disk is not there yet gets the new address, also when it is started in the same moment.
    assert [await url(name) for name in ("one", "halted", "web-0")] == [URL, OTHER, URL]
    # Neither does it matter what else is changed, nor that the programs are restarted.
    await it.end()
    await it.begin()
    await it.change("VirtualMachinePool", POOL, "web", {"spec": {"replicas": 3}})
    await it.change(VM, KUBEVIRT, "one", {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
    await settle(120)
    after = await identities(it.host)
    assert {name: after[name] for name in before} == before and "web-2" in after
    assert await url("web-2") == await url("one") == URL
    assert (await it.host.vm("one"))["spec"]["template"]["metadata"]["labels"]["team"] == "blue"
    # Another template is what the user wants: now it is the address of now.
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    (given,) = pool()["spec"]["virtualMachineTemplate"]["spec"]["dataVolumeTemplates"]
    given["spec"]["pvc"] = claim
    await it.change("VirtualMachinePool", POOL, "web", {"spec": {"virtualMachineTemplate": {"spec": {"dataVolumeTemplates": [given]}}}})
    await settle(120)
    assert await url("web-0") == OTHER


@pytest.mark.spec("kubermatic", 29)
@played
async def test_without_its_data_source_a_machine_goes_on_and_can_be_changed(it: Cluster, /) -> None:
    await it.write(source(), machine())
    await settle(30)
    await it.remove("DataSource", CDI, "image")
    await settle(60)
    assert await it.seen("DataSource", CDI, "image") == {}
    assert await it.host.status() == "Running" and await it.resolved() == ("True", "Resolved")
    await it.change(VM, KUBEVIRT, "web", {"spec": {"runStrategy": "Halted"}})
    await settle(60)
    there = await it.host.vm()
    assert there["spec"]["runStrategy"] == "Halted" and there["status"]["printableStatus"] == "Stopped"
    assert there["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "paddock"}


@pytest.mark.spec("kubermatic", 31)
@played
async def test_disks_wait_for_the_first_start(it: Cluster, /) -> None:
    eager = machine("eager", "Halted", "other")
    eager["metadata"]["annotations"] = {"kubevirt.io/immediate-data-volume-creation": "true"}
    await it.write(source(), machine(strategy="Halted"), eager)
    await settle(60)
    assert await names(it.host, "datavolumes", CDI) == ["other"]
    assert (await it.host.vm("eager"))["metadata"]["annotations"]["kubevirt.io/immediate-data-volume-creation"] == "true"


@pytest.mark.spec("kubermatic", 23)
@pytest.mark.spec("kubermatic", 30)
@played
async def test_certificates_and_namespaces(it: Cluster, /) -> None:
    root, issue = authority()
    client, https = issue("client"), "https://images/a"
    it.host.engine.images.offer(https)
    both = {"secretRef": {"name": "client"}}
    for each in (it.front, it.host.api):
        await each.namespace("images")
    await it.write(
        source("mutual", https, certConfig={"cert": both, "key": both}),
        source("roots", https, certConfig={"secretRef": {"name": "roots"}}),
        source("private", namespace="images", secretRef="account"),
        source("bundle", https, namespace="images", certConfig={"caBundle": base64.b64encode(root.certificate.encode()).decode()}),
    )
    for name in ("mutual", "roots"):
        await it.write(machine(name, disk=f"{name}-disk", of=name))
    for name in ("private", "bundle"):
        await it.write(machine(name, disk=f"{name}-disk", of=name, namespace="images"))
    await settle(60)
    assert {name: await it.resolved(name) for name in ("mutual", "roots", "private", "bundle")} == {
        "mutual": ("False", "ClientCertificateUnsupported"),
        "roots": ("False", "DataSourceNotReady"),
        "private": ("False", "CrossNamespaceSecret"),
        "bundle": ("True", "Resolved"),
    }
    assert await it.condition("DataSource", CDI, "mutual", "Ready") == ("False", "ClientCertificateUnsupported")
    assert await it.condition("DataSource", CDI, "roots", "Ready") == ("False", "SecretNotFound")
    assert await names(it.host) == ["bundle"]
    await it.host.make(secret("roots", **{"ca.pem": root.certificate}), secret("client", **{"tls.crt": client.certificate}))
    await settle(30)
    assert await it.resolved("roots") == ("True", "Resolved") and await it.host.status("roots") == "Running"
    for name in ("roots", "bundle"):
        found = await it.host.get("ConfigMap", "v1", f"{name}-ca")
        assert found["data"]["ca.pem"].count("BEGIN CERTIFICATE") == 1 and "ownerReferences" not in found["metadata"]
        template = (await it.host.vm(name))["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]
        assert template == {"url": https, "certConfigMap": f"{name}-ca"}
    # What is to be trusted follows the Secret though the disk is there.
    more = await it.host.api.merge("/api/v1/namespaces/default/secrets/roots", {"stringData": {"ca.crt": client.certificate}})
    assert more.status == 200
    await settle(10)
    assert (await it.host.get("ConfigMap", "v1", "roots-ca"))["data"]["ca.pem"] == client.certificate
    await it.remove(VM, KUBEVIRT, "roots")
    await settle(60)
    assert await it.host.get("ConfigMap", "v1", "roots-ca") == {} and await it.host.get("ConfigMap", "v1", "bundle-ca") != {}


@pytest.mark.spec("kubermatic", 37)
@played
async def test_a_cached_image_is_imported_once(it: Cluster, /) -> None:
    await it.write(source(), source("kept", OTHER, cached=True))
    for name, of in (("one", "image"), ("two", "image"), ("three", "kept"), ("four", "kept")):
        await it.write(machine(name, disk=f"{name}-disk", of=of))
        await settle(60)
    assert it.host.engine.images.fetched == {URL: 2, OTHER: 1}
    golden = await it.host.get("DataVolume", CDI, "kept-golden")
    assert golden["spec"]["source"] == {"http": {"url": OTHER}} and applied_by_us(golden)
    spec = (await it.host.vm("four"))["spec"]["dataVolumeTemplates"][0]["spec"]
    assert spec["source"] == {"pvc": {"namespace": "default", "name": "kept-golden"}}
    await readdress(it, URL, "kept")
    await settle(60)
    assert (await it.host.get("DataVolume", CDI, "kept-golden"))["spec"]["source"] == {"http": {"url": URL}}
    await it.remove("DataSource", CDI, "kept")
    await settle(60)
    assert await it.host.get("DataVolume", CDI, "kept-golden") == {} and await it.host.status("four") == "Running"


@played
async def test_what_cdi_knows_goes_there_as_it_is(it: Cluster, /) -> None:
    plain = {**source("plain"), "spec": {"source": {"pvc": {"namespace": "default", "name": "base"}}}}
    blank = {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume = {"apiVersion": CDI, "kind": "DataVolume", "metadata": {"name": "base"}, "spec": blank}
    await it.write(plain, machine("web", of="plain"))
    await settle(10)
    there = await it.host.get("DataSource", CDI, "plain")
    assert there["spec"] == plain["spec"] and applied_by_us(there)
    assert (await it.seen("DataSource", CDI, "plain"))["status"] == there["status"]
    assert await it.resolved() == ("False", "DataSourceNotReady")
    await it.write(volume)
    await settle(60)
    assert (await it.host.vm())["spec"]["dataVolumeTemplates"][0]["spec"]["sourceRef"] == {"kind": "DataSource", "name": "plain"}
    assert (await it.seen("DataVolume", CDI, "base"))["status"]["phase"] == "Succeeded" and await it.resolved() == ("True", "Resolved")
    # A DataSource that only the cluster has will do.
    await it.host.make({**plain, "metadata": {"name": "theirs"}})
    await it.write(machine("other", disk="other", of="theirs"))
    await settle(60)
    assert await it.host.status("other") == "Running"
    # An address in its place: CDI's goes.
    await it.change("DataSource", CDI, "plain", {"spec": {"source": {"pvc": None, "http": {"url": URL}}}})
    await settle(10)
    assert await it.host.get("DataSource", CDI, "plain") == {}


@played
async def test_what_goes_in_the_front_goes_in_the_cluster(it: Cluster, /) -> None:
    await it.write(source(), machine("one"), pool(2))
    await settle(60)
    assert await names(it.host) == ["one", "web-0", "web-1"]
    assert "virtualization.k8c.io/backend" in (await it.seen(VM, KUBEVIRT, "one"))["metadata"]["finalizers"]
    await it.remove(VM, KUBEVIRT, "one")
    await it.remove("VirtualMachinePool", POOL, "web")
    await settle(120)
    assert await it.seen(VM, KUBEVIRT, "one") == {} == await it.seen("VirtualMachinePool", POOL, "web")
    assert await names(it.host) == await names(it.host, "virtualmachinepools", POOL) == await names(it.host, "datavolumes", CDI) == []
    assert await it.seen("DataSource", CDI, "image") != {}


@played
async def test_a_pool_that_is_deleted_without_its_machines(it: Cluster, /) -> None:
    await it.write(source(), pool(2))
    await settle(60)
    await it.remove("VirtualMachinePool", POOL, "web", {"propagationPolicy": "Orphan"})
    await settle(120)
    assert await it.seen("VirtualMachinePool", POOL, "web") == {}
    assert await names(it.host, "virtualmachinepools", POOL) == [] and await names(it.host) == ["web-0", "web-1"]


@played
async def test_strangers_are_left_alone_and_that_is_told(it: Cluster, /) -> None:
    theirs = machine("web", "Halted", "theirs")
    await it.host.make(theirs)
    await settle(5)
    before = await it.host.vm()
    await it.write(source(), machine())
    await settle(60)
    assert await it.host.vm() == before
    assert await it.condition(VM, KUBEVIRT, "web", "Failure") == ("True", "NameConflict")
    events = (await it.front.get("/api/v1/namespaces/default/events")).data["items"]
    assert "NameConflict" in [each["reason"] for each in events]
    # It is let go without touching the other, and comes when the other has gone.
    await it.remove(VM, KUBEVIRT, "web")
    await settle(10)
    assert await it.seen(VM, KUBEVIRT, "web") == {} and await it.host.vm() == before
    await it.write(machine())
    await settle(10)
    await it.host.delete(VM, KUBEVIRT, "web")
    await settle(60)
    assert await it.host.status() == "Running" and await it.condition(VM, KUBEVIRT, "web", "Failure") == ("", "")


@played
async def test_what_is_ours_is_put_back_and_the_rest_is_theirs(it: Cluster, /) -> None:
    await it.write(source(), machine("web", "Always"), machine("halted", "Halted", "later"))
    await settle(60)
    # What `virtctl stop` writes, and a label of somebody else.
    await it.host.change("web", {"spec": {"runStrategy": "Halted"}, "metadata": {"labels": {"team": "blue"}}})
    spoiled = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}}
    await it.host.change("halted", spoiled)
    there = await it.host.vm("halted")
    (template,) = there["spec"]["dataVolumeTemplates"]
    template["spec"]["source"]["http"]["url"] = "http://elsewhere/x"
    await it.host.change("halted", {"spec": {"dataVolumeTemplates": [template]}})
    await settle(60)
    there = await it.host.vm()
    assert there["spec"]["runStrategy"] == "Halted" and there["metadata"]["labels"]["team"] == "blue"
    there = await it.host.vm("halted")
    assert there["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]["url"] == URL
    assert there["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "paddock"
    # What the user changes holds again.
    await it.change(VM, KUBEVIRT, "web", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}})
    await settle(60)
    there = await it.host.vm()
    assert there["spec"]["runStrategy"] == "Always" and there["metadata"]["labels"]["team"] == "blue"


@played
async def test_a_resync_writes_nothing(it: Cluster, /) -> None:
    await it.write(source(), source("kept", OTHER, cached=True), machine("one"), machine("two", disk="more", of="kept"), pool(2))
    await settle(300)
    before = it.revision()
    await settle(600)
    assert it.revision() == before
    for document in (source(), machine("one"), pool(2)):
        await it.write(document)
    await settle(60)
    assert it.revision() == before


@played
async def test_a_refusal_of_the_cluster_is_told_and_tried_again(it: Cluster, /) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    hard = {"hard": {"count/virtualmachines.kubevirt.io": "0"}}
    assert (await it.host.api.post("/api/v1/namespaces/default/resourcequotas", {**quota, "spec": hard})).status == 201
    await settle(10)
    await it.write(source(), machine())
    await settle(30)
    assert await it.condition(VM, KUBEVIRT, "web", "Failure") == ("True", "FailedApply")
    conditions = (await it.seen(VM, KUBEVIRT, "web"))["status"]["conditions"]
    assert any("exceeded quota" in each.get("message", "") for each in conditions)
    assert (await it.host.api.delete("/api/v1/namespaces/default/resourcequotas/none")).status == 200
    await settle(400)
    assert await it.host.status() == "Running" and await it.condition(VM, KUBEVIRT, "web", "Failure") == ("", "")


@pytest.mark.parametrize("number", range(6))
@played
async def test_programs_that_die_between_any_two_writes_come_to_the_same_end(it: Cluster, /, number: int) -> None:
    await it.write(machine(), source(cached=True), pool(2))
    for step in range(4):
        await asyncio.sleep(0.003 * number + 0.01 * step)
        await it.end()
        await it.begin()
    await settle(120)
    assert await names(it.host) == ["web", "web-0", "web-1"] == await names(it.host, "virtualmachineinstances")
    assert it.host.engine.images.fetched[URL] == 1 and await it.resolved() == ("True", "Resolved")
    await it.remove(VM, KUBEVIRT, "web")
    await asyncio.sleep(0.01 * number)
    await it.end()
    await it.begin()
    await settle(60)
    assert await it.seen(VM, KUBEVIRT, "web") == {} == await it.host.vm()


@played
async def test_what_a_machine_is_called_goes_to_the_cluster_and_nothing_else_with_it(it: Cluster, /) -> None:
    async def call(labels: Data, **more: Any) -> Data:
        await it.change(VM, KUBEVIRT, "web", {"metadata": {"labels": labels}, **more})
        await settle(20)
        return await it.host.vm()

    await it.write(source(), machine())
    await settle(30)
    stranger = await it.host.api.merge(it.host.place(VM, KUBEVIRT, name="web"), {"metadata": {"labels": {"theirs": "x"}}})
    stopped = await it.host.api.merge(it.host.place(VM, KUBEVIRT, name="web"), {"spec": {"runStrategy": "Halted"}})
    assert stranger.status == stopped.status == 200
    there = await call({"team": "blue", "tier": "1"})
    kept = {"app.kubernetes.io/managed-by": "paddock", "theirs": "x"}
    assert there["metadata"]["labels"] == {**kept, "team": "blue", "tier": "1"}
    # It was stopped in the cluster, and being called something is no reason to start.
    assert there["spec"]["runStrategy"] == "Halted"
    assert (await call({"team": None}))["metadata"]["labels"] == {**kept, "tier": "1"}
    revision = it.revision()
    await settle(900)
    assert it.revision() == revision
    # A change of both: what was taken away goes, though it was written on another occasion.
    there = await call({"tier": None, "team": "red"}, spec={"runStrategy": "Always"})
    assert there["metadata"]["labels"] == {**kept, "team": "red"} and there["spec"]["runStrategy"] == "Always"
