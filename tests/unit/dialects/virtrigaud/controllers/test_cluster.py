"""The programs of Providers in a cluster (docs/spec/virtrigaud.md 2.4, 3.7 and 3.8)."""

import asyncio
import base64
from pathlib import Path

import msgspec
import pytest

from paddock.base.jsondata import Data
from paddock.contract import tls
from paddock.dialects.virtrigaud.controllers.providers.cluster import ClusterSettings
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan.programs import embedded
from tests.coroutines import timeless
from tests.kit.providers import providertls
from tests.unit.kubevirt.controllers.providerpods import CORE, DEPLOYMENTS, KEY, NAME, Cluster, cluster, services_are_here
from tests.unit.kubevirt.controllers.rigaudharness import base, provider

_USED = services_are_here


async def secret(world: Cluster, material: tls.TlsMaterial, name: str = "own") -> None:
    values = {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.authority}
    data = {each: base64.b64encode(value).decode() for each, value in values.items()}
    made = await world.api.post(f"{CORE}/secrets", {"metadata": {"name": name}, "data": data})
    if made.status == 409:
        made = await world.api.merge(f"{CORE}/secrets/{name}", {"data": data})
    assert made.status in (200, 201), made.data


@pytest.mark.spec("virtrigaud", 64)
@pytest.mark.spec("virtrigaud", 66)
@timeless
async def test_a_provider_without_a_tls_block_becomes_running_and_healthy(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        await asyncio.sleep(2)
        status = await world.status()
        assert status["runtime"]["phase"] == "Pending", status
        assert status["healthy"] is False
        assert (await world.condition("ProviderRuntimeReady"))[:2] == ("False", "DeploymentNotReady")
        assert (await world.condition("TLSConfigured"))[:2] == ("True", "Enabled")
        async with world.pod():
            await world.running()
            status = await world.status()
            assert status["runtime"] == {
                "mode": "Remote",
                "endpoint": f"{NAME}.default.svc.cluster.local:{world.port}",
                "serviceRef": {"name": NAME},
                "phase": "Running",
                "message": "1 of 1 Pods are ready",
                "readyReplicas": 1,
                "availableReplicas": 1,
            }
            for aspect, reason in (
                ("ProviderRuntimeReady", "DeploymentReady"),
                ("ProviderAvailable", "RemoteAvailable"),
                ("TLSConfigured", "Enabled"),
                ("CapabilitiesReported", "CapabilitiesFetched"),
            ):
                assert (await world.condition(aspect))[:2] == ("True", reason)
            # The connection is encrypted, and only the manager is let in.
            plain = tls.client_context(providertls.Authority().issue(NAME))
            with pytest.raises(OSError, match="certificate verify failed"):
                await asyncio.open_connection("127.0.0.1", world.port, ssl=plain, server_hostname=NAME)


@pytest.mark.spec("virtrigaud", 65)
@timeless
async def test_the_objects_are_those_of_the_document(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        await asyncio.sleep(2)
        made = await world.deployment()
        labels = {
            "app.kubernetes.io/name": "virtrigaud-provider",
            "app.kubernetes.io/instance": "lab",
            "app.kubernetes.io/component": "provider",
            "app.kubernetes.io/managed-by": "virtrigaud",
            "virtrigaud.io/provider-type": "libvirt",
        }
        assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] == labels
        selector = {name: labels[name] for name in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}
        assert made["spec"]["selector"]["matchLabels"] == selector and made["spec"]["replicas"] == 1
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Provider", "lab", True)
        service = await world.get(f"{CORE}/services/{NAME}")
        assert service["spec"]["selector"] == selector and service["spec"]["type"] == "ClusterIP"
        assert [(each["name"], each["port"]) for each in service["spec"]["ports"]] == [("grpc", world.port), ("metrics", 8080)]
        pod = made["spec"]["template"]["spec"]
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
        assert pod["terminationGracePeriodSeconds"] == 30
        volumes = {each["name"]: each for each in pod["volumes"]}
        assert volumes["provider-credentials"]["secret"]["secretName"] == "lab"
        assert [each["key"] for each in volumes["provider-tls"]["secret"]["items"]] == ["tls.crt", "tls.key", "ca.crt"]
        # Nothing is written again when nothing has changed.
        before = world.wire.writes
        await asyncio.sleep(20)
        assert world.wire.writes == before


@pytest.mark.spec("virtrigaud", 65)
@timeless
async def test_the_container_is_that_of_the_document(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(defaults={"datastore": "fast", "cluster": "c1", "folder": "f1"})
        await asyncio.sleep(2)
        container = await world.container()
        assert (container["name"], container["image"]) == ("provider", "example/provider:1")
        assert container["args"] == [f"--port={world.port}", "--health-port=8080"]
        assert {each["name"]: each["value"] for each in container["env"]} == {
            "PROVIDER_TYPE": "libvirt",
            "PROVIDER_ENDPOINT": "qemu+ssh://root@lab/system",
            "PROVIDER_NAMESPACE": "default",
            "PROVIDER_NAME": "lab",
            "TLS_ENABLED": "true",
            "TLS_INSECURE_SKIP_VERIFY": "false",
            "LOG_LEVEL": "info",
            "LOG_FORMAT": "text",
            "PROVIDER_DEFAULT_DATASTORE": "fast",
            "PROVIDER_DEFAULT_CLUSTER": "c1",
            "PROVIDER_DEFAULT_FOLDER": "f1",
            "VIRTRIGAUD_PROVIDER_ALLOWED_SANS": "paddock-virtrigaud-manager",
        }
        assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
        assert [(each["mountPath"], each.get("readOnly", False)) for each in container["volumeMounts"]] == [
            ("/etc/virtrigaud/credentials", True),
            ("/etc/virtrigaud/tls", True),
            ("/tmp", False),
            ("/tmp/virtrigaud-libvirt", False),
        ]
        for probe, delay, period in (("livenessProbe", 15, 20), ("readinessProbe", 5, 10)):
            found = container[probe]
            assert (found["httpGet"]["path"], found["httpGet"]["port"]) == ("/healthz", 8080)
            assert (found["initialDelaySeconds"], found["periodSeconds"]) == (delay, period)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "preStop" in container["lifecycle"]


@pytest.mark.spec("virtrigaud", 65, 154)
@timeless
async def test_what_the_user_says_of_the_pods_is_in_them(tmp_path: Path) -> None:
    given = {
        "replicas": 3,
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        "env": [{"name": "PVE_NODE", "value": "n1"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}],
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 60},
        "readinessProbe": {"tcpSocket": {"port": 9443}},
        "logLevel": "debug",
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                }
            }
        },
    }
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(runtime=given)
        await asyncio.sleep(2)
        made, container = await world.deployment(), await world.container()
        pod = made["spec"]["template"]["spec"]
        assert made["spec"]["replicas"] == 3 and container["imagePullPolicy"] == "Always"
        assert pod["imagePullSecrets"] == given["imagePullSecrets"] and pod["nodeSelector"] == given["nodeSelector"]
        assert pod["tolerations"] == given["tolerations"] and pod["affinity"] == given["affinity"]
        assert container["resources"] == given["resources"] and container["env"][-2:] == given["env"]
        assert {"name": "LOG_LEVEL", "value": "debug"} in container["env"]
        assert pod["securityContext"] == given["securityContext"]
        assert container["livenessProbe"]["periodSeconds"] == 60 and container["readinessProbe"]["tcpSocket"] == {"port": 9443}
        reply = await world.api.merge(f"{base('Provider')}/lab", {"spec": {"runtime": {"replicas": 2, "nodeSelector": None}}})
        assert reply.status == 200
        await asyncio.sleep(2)
        made = await world.deployment()
        assert made["spec"]["replicas"] == 2 and "nodeSelector" not in made["spec"]["template"]["spec"]


@pytest.mark.spec("virtrigaud", 65)
def test_a_name_that_is_too_long_ends_with_a_digest() -> None:
    names = {tls.service_name("default", "a" * 60), tls.service_name("default", "a" * 61)}
    assert len(names) == 2 and all(len(each) <= 63 and each.startswith("virtrigaud-provider-default-aaa") for each in names)


@pytest.mark.spec("virtrigaud", 71)
@timeless
async def test_the_gate_of_the_transport(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(service={"tls": {"enabled": False}})
        await asyncio.sleep(2)
        assert (await world.condition("TLSConfigured"))[:2] == ("False", "ExplicitlyDisabled")
        variables = {each["name"]: each["value"] for each in (await world.container())["env"]}
        assert (variables["TLS_ENABLED"], variables["VIRTRIGAUD_PROVIDER_INSECURE"]) == ("false", "true")
        assert await world.get(f"{CORE}/secrets/{NAME}-tls") == {}
        async with world.pod(secret=""):
            await world.running()
        # Another Secret than the managed one: it has to be there, and whole.
        service = {"spec": {"runtime": {"service": {"tls": {"enabled": True, "secretRef": {"name": "own"}}}}}}
        await world.api.merge(f"{base('Provider')}/lab", service)
        await asyncio.sleep(2)
        assert await world.condition("TLSConfigured") == (
            "False",
            "SecretNotFound",
            "Secret default/own of spec.runtime.service.tls.secretRef does not exist",
        )
        assert (await world.condition("ProviderRuntimeReady"))[:2] == ("False", "TLSNotConfigured")
        await world.api.post(f"{CORE}/secrets", {"metadata": {"name": "own"}, "stringData": {"tls.crt": "a", "tls.key": "b"}})
        await asyncio.sleep(2)
        assert (await world.condition("TLSConfigured"))[1:] == ("SecretIncomplete", "Secret default/own lacks ca.crt")
        await secret(world, providertls.Authority().issue(tls.server_name(*KEY)))
        await asyncio.sleep(2)
        assert (await world.condition("TLSConfigured"))[:2] == ("True", "Enabled")
        async with world.pod(secret="own"):
            await world.running()


@pytest.mark.spec("virtrigaud", 71)
@pytest.mark.parametrize(("service", "reason"), [({}, "TLSBlockMissing"), ({"tls": {"enabled": True}}, "SecretRefMissing")])
@timeless
async def test_without_managed_certificates_a_secret_has_to_be_named(tmp_path: Path, service: Data, reason: str) -> None:
    async with cluster(tmp_path, settings=ClusterSettings(managed_certificates=False)) as world:
        await world.credentials()
        await world.make(service=service)
        await asyncio.sleep(2)
        assert (await world.condition("TLSConfigured"))[:2] == ("False", reason)
        assert (await world.status())["runtime"]["phase"] == "Failed" and await world.deployment() == {}


@pytest.mark.spec("virtrigaud", 68)
@timeless
async def test_other_credentials_and_certificates_roll_the_pods(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await secret(world, providertls.Authority().issue(tls.server_name(*KEY)))
        await world.make(service={"tls": {"secretRef": {"name": "own"}}})
        await asyncio.sleep(2)
        seen = [(await world.deployment())["spec"]["template"]["metadata"]["annotations"]]
        await world.credentials("second")
        await asyncio.sleep(2)
        seen.append((await world.deployment())["spec"]["template"]["metadata"]["annotations"])
        authority = providertls.Authority()
        await secret(world, authority.issue(tls.server_name(*KEY)))
        await asyncio.sleep(2)
        seen.append((await world.deployment())["spec"]["template"]["metadata"]["annotations"])
        first, second, third = seen
        assert first != second != third and first["virtrigaud.io/tls-revision"] == second["virtrigaud.io/tls-revision"]
        # Nothing can be guessed from what everybody may read.
        assert "second" not in str(second)
        async with world.pod(secret="own"):
            await world.running()


@pytest.mark.spec("virtrigaud", 123)
@timeless
async def test_insecure_skip_verify_reaches_the_provider_and_is_said(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(insecureSkipVerify=True)
        await asyncio.sleep(2)
        assert {"name": "TLS_INSECURE_SKIP_VERIFY", "value": "true"} in (await world.container())["env"]
        assert (await world.condition("HypervisorVerified"))[:2] == ("False", "InsecureSkipVerify")
        await world.api.merge(f"{base('Provider')}/lab", {"spec": {"insecureSkipVerify": False}})
        await asyncio.sleep(2)
        assert {"name": "TLS_INSECURE_SKIP_VERIFY", "value": "false"} in (await world.container())["env"]
        assert await world.condition("HypervisorVerified") == ("", "", "")


@pytest.mark.spec("virtrigaud", 72)
@timeless
async def test_what_keeps_the_pods_away_is_said(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.make()
        await asyncio.sleep(2)
        found = await world.condition("ProviderRuntimeReady")
        assert found == ("False", "CredentialsMissing", "Secret default/lab of spec.credentialSecretRef does not exist")
        assert await world.deployment() == {}
        await world.credentials()
        await asyncio.sleep(2)
        problem = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "has timed out progressing"}
        await world.report(ready=0, conditions=[problem])
        await asyncio.sleep(2)
        found = await world.condition("ProviderRuntimeReady")
        assert found == ("False", "DeploymentNotReady", "the Deployment does not progress: has timed out progressing")
        assert (await world.status())["runtime"]["phase"] == "Failed"
        await world.api.merge(f"{base('Provider')}/lab", {"spec": {"type": "firecracker", "endpoint": "https://fc"}})
        await asyncio.sleep(2)
        found = await world.condition("ProviderRuntimeReady")
        assert found[:2] == ("False", "DriverMissing") and "virtrigaud.io/provider-address" in found[2]


@timeless
async def test_a_deployment_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "theirs"}]}}
        labels = {"app.kubernetes.io/managed-by": "virtrigaud"}
        body = {"metadata": {"name": NAME, "labels": labels}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
        assert (await world.api.post(DEPLOYMENTS, body)).status == 201
        await world.make()
        await asyncio.sleep(2)
        found = await world.condition("ProviderRuntimeReady")
        assert found[:2] == ("False", "DeploymentError") and "belongs to nobody that says so" in found[2]
        assert (await world.container())["image"] == "theirs"


@timeless
async def test_claims_of_migrations_are_mounted_and_known_when_the_pods_have_rolled(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        await asyncio.sleep(2)
        labels = {"virtrigaud.io/component": "migration-storage", "virtrigaud.io/migration": "move"}
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        body = {"metadata": {"name": "move-storage", "labels": labels}, "spec": spec}
        assert (await world.api.post(f"{CORE}/persistentvolumeclaims", body)).status == 201
        await asyncio.sleep(2)
        mounts = {each["name"]: each["mountPath"] for each in (await world.container())["volumeMounts"]}
        assert mounts["migration-move-storage"] == "/mnt/migration-storage/move-storage"
        assert world.connections is not None
        assert not world.connections.find(KEY, "libvirt").reaches("move-storage")
        async with world.pod():
            await world.running()
            assert world.connections.find(KEY, "libvirt").reaches("move-storage")
            # While the Deployment rolls, nobody knows what a Pod has mounted.
            await world.report(ready=1, updatedReplicas=0)
            await asyncio.sleep(1)
            assert not world.connections.find(KEY, "libvirt").reaches("move-storage")


@timeless
async def test_a_served_provider_gets_no_pods(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        await asyncio.sleep(2)
        assert await world.deployment()
        path = f"{base('Provider')}/lab"
        await world.api.merge(path, {"metadata": {"annotations": {"virtrigaud.io/provider-address": "lab.default.svc.cluster.local:9443"}}})
        await asyncio.sleep(2)
        assert await world.deployment() == {} and await world.get(f"{CORE}/secrets/{NAME}-tls") == {}
        assert (await world.condition("ProviderRuntimeReady"))[:2] == ("False", "TLSNotConfigured")


@timeless
async def test_managed_certificates_are_made_once_though_the_news_of_them_is_late(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        world.wire.late = {"secrets": 5.0}
        await world.stop()
        await world.start()
        await asyncio.sleep(10)
        await world.make()
        await asyncio.sleep(2)
        before = await world.get(f"{CORE}/secrets/{NAME}-tls")
        for replicas in (2, 3):
            await world.api.merge(f"{base('Provider')}/lab", {"spec": {"runtime": {"replicas": replicas}}})
            await asyncio.sleep(1)
        await asyncio.sleep(20)
        assert before and (await world.get(f"{CORE}/secrets/{NAME}-tls"))["data"] == before["data"]


@timeless
async def test_managed_certificates_are_kept_and_made_anew_in_time(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(healthCheck={"interval": "24h"})
        await asyncio.sleep(2)
        before = await world.get(f"{CORE}/secrets/{NAME}-tls")
        await world.stop()
        await world.start()
        await asyncio.sleep(2)
        assert (await world.get(f"{CORE}/secrets/{NAME}-tls"))["data"] == before["data"]
        await world.stop()
        world.clock.skew += 340 * 86400.0
        await world.start()
        await asyncio.sleep(2)
        assert (await world.get(f"{CORE}/secrets/{NAME}-tls"))["data"]["tls.crt"] != before["data"]["tls.crt"]


@pytest.mark.spec("virtrigaud", 103)
@timeless
async def test_credentials_of_another_namespace_are_not_used(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.api.namespace("other")
        body = {"metadata": {"name": "lab"}, "stringData": {"password": "theirs"}}
        assert (await world.api.post("/api/v1/namespaces/other/secrets", body)).status == 201
        await world.credentials()
        refused = await world.api.post(base("Provider"), _elsewhere("lab"))
        # A cluster's CRD cannot say that, so the controller does, too.
        assert refused.status == 422
        choice = embedded.credentials_problem(msgspec.convert(_elsewhere("lab") | {"kind": "Provider"}, Provider), None)
        assert "names the namespace other; copy the Secret into default" in choice


def _elsewhere(name: str) -> Data:
    body = provider(name, credentialSecretRef={"name": "lab", "namespace": "other"})
    body["metadata"]["namespace"] = "default"
    return body
