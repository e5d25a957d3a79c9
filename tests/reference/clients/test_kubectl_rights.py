"""Rights through kubectl: auth reconcile, auth can-i, acting for others, and API services as dashboards list them."""

import json

import pytest

from tests.reference.client import Kubectl

pytestmark = pytest.mark.reference


def wanted(namespace: str, *verbs: str) -> str:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader", "namespace": namespace}}
    binding = {**role, "kind": "RoleBinding"}
    rules = [{"verbs": [verb], "apiGroups": [""], "resources": ["configmaps"]} for verb in verbs]
    ada = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ada"}
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    items = [{**role, "rules": rules}, {**binding, "subjects": [ada], "roleRef": role_ref}]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_reconcile_adds_what_is_missing_and_can_i_sees_it(kubectl: Kubectl, namespace: str) -> None:
    there = ("-n", namespace)
    said = kubectl.run("auth", "reconcile", "-f", "-", stdin=wanted(namespace, "get"))
    assert said.code == 0, said.errors
    said = kubectl.run("auth", "reconcile", "-f", "-", stdin=wanted(namespace, "list"))
    assert said.code == 0, said.errors
    rules = json.loads(kubectl.ok("get", "role", "reader", *there, "-o", "json"))["rules"]
    assert sorted(verb for rule in rules for verb in rule["verbs"]) == ["get", "list"]
    for verb, expected in (("get", "yes"), ("list", "yes"), ("delete", "no")):
        assert kubectl.run("auth", "can-i", verb, "configmaps", "--as=ada", *there).output.strip() == expected
    listed = kubectl.ok("auth", "can-i", "--list", "--as=ada", *there)
    assert any(line.split()[0] == "configmaps" for line in listed.splitlines())
    said = kubectl.run("auth", "reconcile", "-f", "-", "--remove-extra-permissions", stdin=wanted(namespace, "get"))
    assert said.code == 0, said.errors
    assert kubectl.run("auth", "can-i", "list", "configmaps", "--as=ada", *there).output.strip() == "no"
    assert "forbidden" in kubectl.run("get", "secrets", "--as=ada", *there).errors


def test_who_is_acted_for_is_told(kubectl: Kubectl) -> None:
    said = json.loads(kubectl.ok("auth", "whoami", "-o", "json", "--as=ada", "--as-group=dev", "--as-group=ops", "--as-uid=7"))
    info = said["status"]["userInfo"]
    assert (info["username"], info["uid"], info["groups"]) == ("ada", "7", ["dev", "ops", "system:authenticated"])
