"""Waits of kubectl: for conditions, values, ends; and its actions on nodes and in the name of others."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.reference.client import MERGE_PATCH, Api, Kubectl

pytestmark = [pytest.mark.reference, pytest.mark.usefixtures("crates")]
CRATE = {"apiVersion": "reference.paddock.example/v1", "kind": "Crate", "spec": {"color": "red"}}
RBAC = "rbac.authorization.k8s.io"


def path(namespace: str, name: str = "") -> str:
    return f"/apis/reference.paddock.example/v1/namespaces/{namespace}/crates" + (f"/{name}" if name else "")


def make(api: Api, namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    made = api.request("POST", path(namespace), {**CRATE, "metadata": {"name": name, **metadata}})
    assert made.ok, made.message
    return made.body


@contextmanager
def begun(kubectl: Kubectl, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A kubectl that goes on while the test does something."""
    environment = {"KUBECONFIG": str(kubectl.access.kubeconfig), "HOME": str(kubectl.home)}
    command = [str(kubectl.program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as run:
        try:
            yield run
        finally:
            run.kill()


def ended(run: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = run.communicate(timeout=60)
    return run.returncode, output


def test_wait(kubectl: Kubectl, api: Api, namespace: str) -> None:
    there = ("-n", namespace, "--timeout=30s")
    with begun(kubectl, "wait", "--for=create", "crate/one", *there) as run:
        make(api, namespace, "one")
        assert ended(run)[0] == 0
    with begun(kubectl, "wait", "--for=jsonpath={.status.replicas}=3", "crate/one", *there) as run:
        assert api.request("PATCH", path(namespace, "one") + "/status", {"status": {"replicas": 3}}, headers=MERGE_PATCH).ok
        assert ended(run) == (0, "crate.reference.paddock.example/one condition met\n")
    with begun(kubectl, "wait", "--for=delete", "crate/one", *there) as run:
        assert api.request("DELETE", path(namespace, "one")).ok
        assert ended(run)[0] == 0
    assert "condition met" in kubectl.ok("wait", "--for=condition=Established", "crd/crates.reference.paddock.example")
    late = kubectl.run("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s")
    assert (late.code, "condition met" in late.output) == (0, True)
    never = kubectl.run("wait", "--for=condition=Never", "namespace/default", "--timeout=1s")
    assert (never.code, "timed out waiting for the condition" in never.errors) == (1, True)


@pytest.mark.spec("kube-api", 92)
def test_delete(kubectl: Kubectl, api: Api, namespace: str) -> None:
    uid = make(api, namespace, "one")["metadata"]["uid"]
    answer = api.request("DELETE", path(namespace, "one"))
    assert (answer.body["kind"], answer.body["status"], answer.body["details"]["uid"]) == ("Status", "Success", uid)
    make(api, namespace, "two")
    assert kubectl.ok("delete", "crate", "two", "-n", namespace, "--timeout=30s").startswith(
        'crate.reference.paddock.example "two" deleted'
    )
    for name in ("three", "four"):
        make(api, namespace, name, labels={"by": "test"})
    assert kubectl.ok("delete", "crates", "-l", "by=test", "-n", namespace).count("deleted") == 2
    make(api, namespace, "five", finalizers=["test.example/hold"])
    held = kubectl.run("delete", "crate", "five", "-n", namespace, "--timeout=1s")
    assert (held.code, "timed out waiting for the condition" in held.errors) == (1, True)
    with begun(kubectl, "delete", "crate", "five", "-n", namespace, "--ignore-not-found") as run:
        assert api.request("PATCH", path(namespace, "five"), {"metadata": {"finalizers": None}}, headers=MERGE_PATCH).ok
        assert ended(run)[0] == 0


@pytest.mark.spec("kube-api", 101)
def test_a_namespace_goes_when_nothing_holds_it(kubectl: Kubectl, api: Api) -> None:
    kubectl.ok("create", "namespace", "held")
    make(api, "held", "one", finalizers=["test.example/hold"])
    with begun(kubectl, "delete", "namespace", "held", "--wait") as run:
        said = ("jsonpath={.status.conditions[?(@.type=='NamespaceFinalizersRemaining')].message}", "--timeout=30s")
        kubectl.ok("wait", f"--for={said[0]}", "namespace/held", said[1])
        status = api.request("GET", "/api/v1/namespaces/held").body["status"]
        assert (status["phase"], run.poll()) == ("Terminating", None)
        messages = {condition["type"]: condition["message"] for condition in status["conditions"] if condition["status"] == "True"}
        assert "crates.reference.paddock.example has 1 resource instances" in messages["NamespaceContentRemaining"]
        assert "test.example/hold in 1 resource instances" in messages["NamespaceFinalizersRemaining"]
        refused = kubectl.run("create", "configmap", "late", "-n", "held")
        assert (refused.code, "because it is being terminated" in refused.errors) == (1, True)
        assert api.request("PATCH", path("held", "one"), {"metadata": {"finalizers": None}}, headers=MERGE_PATCH).ok
        assert ended(run) == (0, 'namespace "held" deleted\n')
    assert kubectl.run("get", "namespace", "held").code == 1


@pytest.mark.spec("kube-api", 119)
def test_the_node(kubectl: Kubectl) -> None:
    heads, (name, status, *_) = (line.split() for line in kubectl.ok("get", "nodes").splitlines())
    assert (heads[:2], status) == (["NAME", "STATUS"], "Ready")
    assert "cordoned" in kubectl.ok("cordon", name)
    assert kubectl.ok("get", "node", name, "--no-headers").split()[1] == "Ready,SchedulingDisabled"
    assert "uncordoned" in kubectl.ok("uncordon", name)
    assert "drained" in kubectl.ok("drain", name, "--ignore-daemonsets")
    kubectl.ok("uncordon", name)
    kubectl.ok("taint", "node", name, "test.example/busy=yes:NoSchedule")
    assert kubectl.ok("get", "node", name, "-o", "jsonpath={.spec.taints[*].key}") == "test.example/busy"
    kubectl.ok("taint", "node", name, "test.example/busy-")
    kubectl.ok("label", "node", name, "test.example/rack=7")
    assert name in kubectl.ok("get", "nodes", "-l", "test.example/rack=7")
    kubectl.ok("label", "node", name, "test.example/rack-")


def role(*rules: dict[str, list[str]]) -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": list(rules)}


BINDING: dict[str, Any] = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "b"},
    "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
    "subjects": [{"kind": "User", "name": "carol", "apiGroup": RBAC}, {"kind": "Group", "name": "devs", "apiGroup": RBAC}],
}
RULES = (
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
    {"apiGroups": ["reference.paddock.example"], "resources": ["crates/status"], "verbs": ["*"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["*"], "verbs": ["delete"]},
)
# A question to kubectl, the request that it is about, and what both come to.
QUESTIONS = [
    (("get", "configmaps"), ("GET", "/api/v1/namespaces/{}/configmaps/x"), True),
    (("list", "configmaps"), ("GET", "/api/v1/namespaces/{}/configmaps"), True),
    (("delete", "configmaps"), ("DELETE", "/api/v1/namespaces/{}/configmaps/x"), False),
    (("get", "secrets/mine"), ("GET", "/api/v1/namespaces/{}/secrets/mine"), True),
    (("get", "secrets/other"), ("GET", "/api/v1/namespaces/{}/secrets/other"), False),
    (("list", "secrets"), ("GET", "/api/v1/namespaces/{}/secrets"), False),
    (("get", "crates", "--subresource=status"), ("GET", "/apis/reference.paddock.example/v1/namespaces/{}/crates/x/status"), True),
    (("get", "crates"), ("GET", "/apis/reference.paddock.example/v1/namespaces/{}/crates/x"), False),
    (("delete", "leases.coordination.k8s.io"), ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/{}/leases/x"), True),
    (("get", "leases.coordination.k8s.io"), ("GET", "/apis/coordination.k8s.io/v1/namespaces/{}/leases/x"), False),
    (("get", "/healthz"), ("GET", "/healthz"), True),
    (("get", "/metrics"), ("GET", "/metrics"), False),
]


@pytest.mark.spec("kube-api", 121)
def test_what_carol_may_do(kubectl: Kubectl, api: Api, namespace: str) -> None:
    there = ("-n", namespace)
    documents = (role(*RULES), BINDING)
    # kubectl looks for the namespace in the document alone.
    both = "\n---\n".join(json.dumps({**each, "metadata": {**each["metadata"], "namespace": namespace}}) for each in documents)
    said = [kubectl.run("auth", "reconcile", "-f", "-", *there, stdin=both) for _ in range(2)]
    assert [(ran.code, ran.errors.count("reconciliation required create")) for ran in said] == [(0, 2), (0, 0)]
    for asked, (method, target), allowed in QUESTIONS:
        for who in (("--as=carol",), ("--as=dave", "--as-group=devs")):
            answer = kubectl.run("auth", "can-i", *asked, *who, *there)
            assert (answer.output, answer.code) == (("yes\n", 0) if allowed else ("no\n", 1)), asked
        reply = api.request(method, target.format(namespace), headers={"Impersonate-User": "carol"})
        assert (reply.status != 403) == allowed, asked
    shown = kubectl.ok("auth", "can-i", "--list", "--as=carol", *there)
    lines = {tuple(line.split()) for line in shown.splitlines()}
    assert {("configmaps", "[]", "[]", "[get", "list]"), ("secrets", "[]", "[mine]", "[get]")} <= lines
    assert {("crates.reference.paddock.example/status", "[]", "[]", "[*]"), ("*.coordination.k8s.io", "[]", "[]", "[delete]")} <= lines
    refused = kubectl.run("delete", "configmap", "x", "--as=carol", *there)
    wanted = f'User "carol" cannot delete resource "configmaps" in API group "" in the namespace "{namespace}"'
    assert (refused.code, wanted in refused.errors) == (1, True)
    assert "carol" in kubectl.ok("auth", "whoami", "--as=carol")
