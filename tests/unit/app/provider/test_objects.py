"""Provider objects: read from a server, shown as a table and as a description."""

from typing import Any

from paddock.app.provider import objects
from paddock.kubernetes.meta import ages
from tests.coroutines import scripted
from tests.golden import Golden
from tests.kit.servers.apiharness import Harness

NOW = 1_800_000_000.0
PATH = "/apis/infra.virtrigaud.io/v1beta1/namespaces/{}/providers"


def provider(name: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": "Provider",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": ages.timestamp(NOW - 7200)},
        "spec": {
            "type": "vsphere",
            "endpoint": "https://vcenter.example:443",
            "credentialSecretRef": {"name": "vcenter"},
            "runtime": {"mode": "Remote", "image": "registry.example/provider-vsphere:v1"},
        },
        **({"status": status} if status else {}),
    }


def full() -> dict[str, Any]:
    condition = {
        "type": "ProviderAvailable",
        "status": "True",
        "reason": "RemoteAvailable",
        "message": "the provider answers\x1b[31m",
        "lastTransitionTime": ages.timestamp(NOW - 600),
    }
    return provider(
        "east",
        healthy=True,
        lastHealthCheck=ages.timestamp(NOW - 20),
        runtime={"phase": "Running", "endpoint": "east.default.svc:9443"},
        conditions=[condition],
        connectedVMs=3,
        reportedCapabilities={"supportsSnapshots": True, "supportsLinkedClones": False, "supportedDiskTypes": ["thin", "thick"]},
    )


def test_the_table(golden: Golden) -> None:
    found = [full(), provider("west")]
    golden("table.txt", objects.table(found, NOW, namespaced=False))
    golden("table-all.txt", objects.table(found, NOW, namespaced=True))
    assert objects.table([], NOW, namespaced=True) == ""


def test_the_description(golden: Golden) -> None:
    golden("description.txt", objects.description(full(), NOW))
    golden("description-new.txt", objects.description(provider("west"), NOW))


@scripted
async def test_they_are_read_from_a_server() -> None:
    async with Harness() as api:
        for namespace, name in (("default", "west"), ("default", "east"), ("other", "north")):
            await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
            body = provider(name)
            body["metadata"] = {"name": name}
            made = await api.post(PATH.format(namespace), body)
            assert made.status == 201, made
        client = api.client()
        assert [each["metadata"]["name"] for each in await objects.in_namespace(client, "default")] == ["east", "west"]
        assert [each["metadata"]["name"] for each in await objects.in_namespace(client, "")] == ["east", "west", "north"]
