"""The roles of Kubernetes' controllers: one for each, bound to the ServiceAccount that it works as."""

from typing import Any

import pytest

from paddock.server.housekeeping import bootstrap
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PREFIX = "system:controller:"


@pytest.mark.spec("kube-api", 144)
@played
async def test_each_controller_has_its_rights(api: Harness, /) -> None:
    await bootstrap.ensure(api.parts)

    async def named(plural: str) -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in (await api.get(f"{RBAC}/{plural}")).data["items"]}

    roles, bindings = await named("clusterroles"), await named("clusterrolebindings")
    controllers = {name for name in roles if name.startswith(PREFIX)}
    assert len(controllers) == 38
    for name in controllers:
        subject = {"kind": "ServiceAccount", "name": name.removeprefix(PREFIX), "namespace": "kube-system"}
        assert (bindings[name]["subjects"], bindings[name]["roleRef"]["name"]) == ([subject], name)
        assert all(rule["verbs"] for rule in roles[name]["rules"])
    signing = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"]}
    kubelets = {**signing, "resourceNames": ["kubernetes.io/kube-apiserver-client-kubelet"]}
    assert kubelets in roles[f"{PREFIX}certificate-controller"]["rules"]
    reading = {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"]}
    assert reading in roles[f"{PREFIX}endpoint-controller"]["rules"]
    manager = "system:kube-controller-manager"
    assert bindings[manager]["subjects"][0]["name"] == manager
    # A second start changes nothing.
    before = {name: each["metadata"]["resourceVersion"] for name, each in roles.items()}
    await bootstrap.ensure(api.parts)
    assert {name: each["metadata"]["resourceVersion"] for name, each in (await named("clusterroles")).items()} == before
