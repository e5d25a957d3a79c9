"""Writes of kubectl: validation, patches, both kinds of apply, scale, and its messages."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.client import MERGE_PATCH, Api, Kubectl

pytestmark = [pytest.mark.reference, pytest.mark.usefixtures("crates")]
PROTOBUF = "application/vnd.kubernetes.protobuf"


def crate(name: str = "one", labels: dict[str, str] | None = None, **spec: Any) -> str:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return json.dumps(
        {"apiVersion": "reference.paddock.example/v1", "kind": "Crate", "metadata": metadata, "spec": {"color": "red", **spec}}
    )


def config(name: str = "conf", **data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "x"}}, "data": data})


@pytest.fixture
def there(namespace: str) -> tuple[str, str]:
    return ("-n", namespace)


def stored(kubectl: Kubectl, there: tuple[str, str], resource: str = "crate", name: str = "one") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl.ok("get", resource, name, *there, "-o", "json", "--show-managed-fields"))
    return found


def managers(thing: dict[str, Any]) -> list[tuple[str, str]]:
    return [(entry["manager"], entry["operation"]) for entry in thing["metadata"].get("managedFields", [])]


TYPED = [
    (("create", "secret", "generic", "s", "--from-literal=a=b"), "secret/s created"),
    (("create", "configmap", "c", "--from-literal=a=b"), "configmap/c created"),
    (("create", "serviceaccount", "robot"), "serviceaccount/robot created"),
    (("create", "token", "default"), "."),
    (("create", "role", "r", "--verb=get", "--resource=configmaps"), "role.rbac.authorization.k8s.io/r created"),
    (("create", "rolebinding", "b", "--role=r", "--user=carol"), "rolebinding.rbac.authorization.k8s.io/b created"),
    (("create", "quota", "q", "--hard=configmaps=5"), "resourcequota/q created"),
    (("create", "service", "clusterip", "s", "--tcp=80:80"), "service/s created"),
    (("create", "ingress", "i", "--rule=a.example/b=s:80,tls=t"), "ingress.networking.k8s.io/i created"),
    (("create", "poddisruptionbudget", "p", "--min-available=1", "--selector=a=b"), "poddisruptionbudget.policy/p created"),
    (("auth", "can-i", "create", "configmaps"), "yes"),
    (("auth", "whoami"), "system:masters"),
]


@pytest.mark.spec("kube-api", 13)
@pytest.mark.parametrize("any_kubectl", ["1.32", "1.33", "newest"], indirect=True)
def test_typed_commands_send_protobuf(any_kubectl: Kubectl, there: tuple[str, str]) -> None:
    for command, said in TYPED:
        ran = any_kubectl.run(*command, *there, "-v=8")
        assert (ran.code, said in ran.output) == (0, True), (command, ran.errors[-800:])
        assert re.search(f'Content-Type: "?{PROTOBUF}', ran.errors), command
    own = f"{there[1]}-inner"
    ran = any_kubectl.run("create", "namespace", own, "-v=8")
    assert (ran.code, ran.output, PROTOBUF in ran.errors) == (0, f"namespace/{own} created\n", True)
    assert "deleted" in any_kubectl.ok("delete", "namespace", own)


@pytest.mark.spec("kube-api", 31)
def test_an_unknown_field(kubectl: Kubectl, there: tuple[str, str]) -> None:
    strict = kubectl.run("create", "-f", "-", *there, stdin=crate(foo=1))
    assert (strict.code, 'strict decoding error: unknown field "spec.foo"' in strict.errors) == (1, True)
    warned = kubectl.run("create", "-f", "-", "--validate=warn", *there, stdin=crate("warned", foo=1))
    assert (warned.code, warned.errors) == (0, 'Warning: unknown field "spec.foo"\n')
    ignored = kubectl.run("create", "-f", "-", "--validate=ignore", *there, stdin=crate("ignored", foo=1))
    assert (ignored.code, ignored.errors) == (0, "")
    for name in ("warned", "ignored"):
        assert "foo" not in stored(kubectl, there, name=name)["spec"]


def test_everything_wrong_is_told_at_once(kubectl: Kubectl, there: tuple[str, str]) -> None:
    ran = kubectl.run("create", "-f", "-", *there, stdin=crate("one", color="green", lid="A"))
    assert ran.code == 1
    assert 'The Crate "one" is invalid' in ran.errors
    assert 'spec.color: Unsupported value: "green": supported values: "red", "blue", "glass"' in ran.errors
    assert "spec.lid: Invalid value" in ran.errors


@pytest.mark.spec("kube-api", 37)
def test_scale(kubectl: Kubectl, api: Api, there: tuple[str, str]) -> None:
    kubectl.ok("create", "-f", "-", *there, stdin=crate())
    assert "scaled" in kubectl.ok("scale", "crate/one", "--replicas=3", *there)
    assert stored(kubectl, there)["spec"]["replicas"] == 3
    refused = kubectl.run("scale", "crate/one", "--current-replicas=2", "--replicas=1", *there)
    assert (refused.code, "Expected replicas to be 2, was 3" in refused.errors) == (1, True)
    assert "scaled" in kubectl.ok("scale", "crate/one", "--current-replicas=3", "--replicas=2", *there)
    path = f"/apis/reference.paddock.example/v1/namespaces/{there[1]}/crates/one"
    status = {"status": {"replicas": 2, "selector": "app=x"}}
    assert api.request("PATCH", f"{path}/status", status, headers=MERGE_PATCH).ok
    scale = api.request("GET", f"{path}/scale").body
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "app=x"})
    assert api.request("PUT", f"{path}/scale", scale | {"spec": {"replicas": 5}}).body["spec"] == {"replicas": 5}
    assert api.request("PATCH", f"{path}/scale", {"spec": {"replicas": 4}}, headers=MERGE_PATCH).body["spec"] == {"replicas": 4}
    assert stored(kubectl, there)["spec"]["replicas"] == 4


@pytest.mark.spec("kube-api", 75)
def test_apply_twice_and_take_away(kubectl: Kubectl, there: tuple[str, str]) -> None:
    for resource, name, full, less, place in (
        ("crate", "one", crate(lid="x"), crate(), "spec"),
        ("configmap", "conf", config(a="1", lid="x"), config(a="1"), "data"),
    ):
        said = [kubectl.ok("apply", "-f", "-", *there, stdin=text).split()[-1] for text in (full, full, less)]
        assert said == ["created", "unchanged", "configured"]
        assert "lid" not in stored(kubectl, there, resource, name)[place]


@pytest.mark.spec("kube-api", 76)
def test_apply_on_the_server_creates(kubectl: Kubectl, there: tuple[str, str]) -> None:
    ran = kubectl.run(
        "apply", "--server-side", "-f", "-", *there, "-v=6", stdin=crate(labels={"app": "x"}, items=[{"name": "a", "weight": 1}])
    )
    assert (ran.code, ran.output) == (0, "crate.reference.paddock.example/one serverside-applied\n")
    assert re.search(r"PATCH.*(201 Created|status=\"201)", ran.errors), ran.errors
    (entry,) = stored(kubectl, there)["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:color": {}, "f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:weight": {}}}},
    }
    before = stored(kubectl, there)
    kubectl.ok("apply", "--server-side", "-f", "-", *there, stdin=crate(labels={"app": "x"}, items=[{"name": "a", "weight": 1}]))
    assert stored(kubectl, there) == before


@pytest.mark.spec("kube-api", 78)
def test_a_conflict_of_two_appliers(kubectl: Kubectl, api: Api, there: tuple[str, str]) -> None:
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-", *there)
    kubectl.ok("apply", "--server-side", "-f", "-", *there, stdin=crate(lid="x"))
    ran = kubectl.run(*other, stdin=crate(lid="y"))
    assert (ran.code, 'conflict with "kubectl": .spec.lid' in ran.errors, "--force-conflicts" in ran.errors) == (1, True, True)
    path = f"/apis/reference.paddock.example/v1/namespaces/{there[1]}/crates/one"
    patch = {"Content-Type": "application/apply-patch+yaml"}
    answer = api.request("PATCH", path, json.loads(crate(lid="y")), query={"fieldManager": "other"}, headers=patch)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert [(cause["reason"], cause["field"]) for cause in answer.body["details"]["causes"]] == [("FieldManagerConflict", ".spec.lid")]
    kubectl.ok(*other, "--force-conflicts", stdin=crate(lid="y"))
    owners = {e["manager"]: e["fieldsV1"]["f:spec"] for e in stored(kubectl, there)["metadata"]["managedFields"]}
    assert owners == {"kubectl": {"f:color": {}}, "other": {"f:color": {}, "f:lid": {}}}


@pytest.mark.spec("kube-api", 86)
def test_from_client_side_apply_to_the_server(kubectl: Kubectl, there: tuple[str, str]) -> None:
    kubectl.ok("apply", "-f", "-", *there, stdin=crate(lid="x"))
    assert managers(stored(kubectl, there)) == [("kubectl-client-side-apply", "Update")]
    moved = kubectl.run("apply", "--server-side", "-f", "-", *there, stdin=crate(lid="moved"))
    assert (moved.code, "conflict" in moved.errors) == (0, False)
    changed = kubectl.run("apply", "--server-side", "-f", "-", *there, stdin=crate(lid="y"))
    assert (changed.code, "conflict" in changed.errors) == (0, False)
    after = stored(kubectl, there)
    assert after["spec"]["lid"] == "y"
    # The annotation of client-side apply has an owner of its own, so that going back works.
    assert set(managers(after)) == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}
    assert kubectl.run("apply", "--server-side", "-f", "-", *there, stdin=crate()).code == 0
    assert "lid" not in stored(kubectl, there)["spec"]


def test_diff(kubectl: Kubectl, there: tuple[str, str]) -> None:
    kubectl.ok("apply", "-f", "-", *there, stdin=crate(lid="x"))
    same = kubectl.run("diff", "-f", "-", *there, stdin=crate(lid="x"))
    assert (same.code, same.output) == (0, "")
    other = kubectl.run("diff", "-f", "-", *there, stdin=crate(lid="other"))
    assert (other.code, "-  lid: x" in other.output, "+  lid: other" in other.output) == (1, True, True)
    on_server = kubectl.run("diff", "--server-side", "--force-conflicts", "-f", "-", *there, stdin=crate(lid="z"))
    assert (on_server.code, "+  lid: z" in on_server.output) == (1, True)
    assert stored(kubectl, there)["spec"]["lid"] == "x"


PRUNED = ("--prune-allowlist=core/v1/ConfigMap", "--prune-allowlist=reference.paddock.example/v1/Crate")


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (("--prune", "-l", "app=x", *PRUNED), {}),
        (("--prune", "-l", "app=x"), {}),
        (("--prune", "--applyset=these"), {"KUBECTL_APPLYSET": "true"}),
    ],
)
def test_prune(kubectl: Kubectl, there: tuple[str, str], options: tuple[str, ...], environment: dict[str, str]) -> None:
    client = replace(kubectl, environment=environment)
    both = "\n---\n".join((config("kept", a="1"), config("goes", a="1")))
    assert client.ok("apply", *options, "-f", "-", *there, stdin=both).count("created") == 2
    said = client.ok("apply", *options, "-f", "-", *there, stdin=config("kept", a="1"))
    assert ("configmap/kept unchanged" in said, "configmap/goes pruned" in said) == (True, True)
    names = client.ok("get", "configmaps", *there, "-l", "app=x", "-o", "name").split()
    assert names == ["configmap/kept"]


def test_patches(kubectl: Kubectl, there: tuple[str, str]) -> None:
    kubectl.ok("create", "-f", "-", *there, stdin=crate())
    kubectl.ok("create", "-f", "-", *there, stdin=config(a="1", b="2"))
    kubectl.ok("patch", "crate", "one", "--type=merge", "-p", '{"spec":{"lid":"x"}}', *there)
    kubectl.ok("patch", "crate", "one", "--type=json", "-p", '[{"op":"replace","path":"/spec/lid","value":"y"}]', *there)
    assert stored(kubectl, there)["spec"]["lid"] == "y"
    kubectl.ok("patch", "configmap", "conf", "-p", '{"data":{"a":null,"c":"3"}}', *there)
    assert stored(kubectl, there, "configmap", "conf")["data"] == {"b": "2", "c": "3"}
    strategic = kubectl.run("patch", "crate", "one", "-p", '{"spec":{"lid":"z"}}', *there)
    assert (strategic.code, "application/merge-patch+json" in strategic.errors) == (1, True)
    kubectl.ok("patch", "crate", "one", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":7}}', *there)
    assert stored(kubectl, there)["status"]["replicas"] == 7
    kubectl.ok("patch", "crate", "one", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":6}}', *there)
    assert stored(kubectl, there)["spec"]["replicas"] == 6


def test_small_changes(kubectl: Kubectl, there: tuple[str, str]) -> None:
    kubectl.ok("create", "-f", "-", *there, stdin=crate())
    kubectl.ok("label", "crate", "one", "a=1", "b=2", *there)
    kubectl.ok("label", "crate", "one", "a-", *there)
    refused = kubectl.run("label", "crate", "one", "b=3", *there)
    assert (refused.code, "--overwrite is false" in refused.errors) == (1, True)
    kubectl.ok("annotate", "crate", "one", "note=it", *there)
    meta = stored(kubectl, there)["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"b": "2"}, {"note": "it"})
    kubectl.ok("replace", "-f", "-", *there, stdin=crate(lid="r"))
    assert stored(kubectl, there)["spec"]["lid"] == "r"
    before = stored(kubectl, there)["metadata"]["uid"]
    kubectl.ok("replace", "--force", "-f", "-", *there, stdin=crate(color="blue"))
    after = stored(kubectl, there)
    assert (after["spec"]["color"], after["metadata"]["uid"] != before) == ("blue", True)
    again = kubectl.run("create", "-f", "-", *there, stdin=crate())
    assert (again.code, 'crates.reference.paddock.example "one" already exists' in again.errors) == (1, True)


def test_a_dry_run_of_the_server(kubectl: Kubectl, there: tuple[str, str]) -> None:
    shown = yaml.safe_load(kubectl.ok("create", "--dry-run=server", "-f", "-", *there, "-o", "yaml", stdin=crate()))
    assert shown["spec"]["replicas"] == 1
    assert kubectl.run("get", "crate", "one", *there).code == 1


def test_kustomize(kubectl: Kubectl, there: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "crate.yaml").write_text(crate())
    wanted = {"namePrefix": "pre-", "resources": ["crate.yaml"], "configMapGenerator": [{"name": "made", "literals": ["a=b"]}]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(wanted))
    assert kubectl.ok("apply", "-k", str(tmp_path), *there).count("created") == 2
    assert kubectl.ok("apply", "-k", str(tmp_path), *there).count("unchanged") == 2
    assert stored(kubectl, there, name="pre-one")["spec"]["color"] == "red"
    assert kubectl.ok("delete", "-k", str(tmp_path), *there).count("deleted") == 2
