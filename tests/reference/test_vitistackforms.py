"""The two forms of Vitistack's Machine: a kube-apiserver with the definition refuses what Paddock refuses, and takes the rest."""

from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import Kind
from tests.reference import verdict
from tests.reference.client import Api
from tests.reference.crds import Crd
from tests.reference.paddock_side import judge, resource_of
from tests.reference.verdict import Question

pytestmark = pytest.mark.reference

OWN: dict[str, Any] = {"provider": "kubevirt"}
DOCUMENT: dict[str, Any] = {"template": "small"}
ROOT: dict[str, Any] = {"name": "root", "sizeGB": 20, "boot": True}
TAKEN: tuple[dict[str, Any], ...] = (
    OWN,
    DOCUMENT,
    {**OWN, "machineClass": "large", "memory": 0, "cpu": {"cores": 2, "threadsPerCore": 2}},
    {**OWN, "disks": [ROOT, {"name": "data", "sizeGB": 5, "boot": False, "encrypted": False}]},
    {**OWN, "userData": "a", "cloudInit": {"networkData": "version: 2", "type": "configDrive"}},
    {**DOCUMENT, "disks": [{"name": "data", "size": "5Gi"}], "cloudInit": {"secretRef": {"name": "a"}}},
)
REFUSED: tuple[dict[str, Any], ...] = (
    {**OWN, **DOCUMENT},
    {**OWN, "networks": [{"name": "eth0", "networkName": "lan"}]},
    {**OWN, "disks": [{**ROOT, "storageClass": "fast"}]},
    {**OWN, "cloudInit": {"secretRef": {"name": "a"}}},
    {**DOCUMENT, "disks": [{"name": "data", "size": "5Gi", "type": "sata"}]},
    {**DOCUMENT, "cloudInit": {"userDataBase64": "YQ=="}},
    {**DOCUMENT, "os": {"architecture": "amd64"}},
    {"machineClass": "small"},
    {"provider": "proxmox"},
    {**OWN, "disks": [{"name": "root"}]},
    {**OWN, "disks": [ROOT, {**ROOT, "name": "data"}]},
    {**OWN, "disks": [{**ROOT, "encrypted": True}]},
    {**OWN, "userData": "a", "cloudInit": {"userDataConfigMapRef": {"name": "a"}}},
    {**OWN, "sshKeys": ["none"]},
    {},
)


@pytest.mark.spec("vitistack", 80, 85)
@pytest.mark.parametrize("spec", [*TAKEN, *REFUSED], ids=str)
def test_both_judges_agree(api: Api, installed: list[Crd], spec: dict[str, Any]) -> None:
    kind = catalog.find("vitistack.io", "Machine")
    assert isinstance(kind, Kind)
    document = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "forms", "namespace": "default"},
        "spec": spec,
    }
    question = Question(document, resource_of(kind, "v1alpha1"))
    ours, theirs = judge(question), verdict.ask(api, question)
    assert (ours.accepted, theirs.accepted) == (spec in TAKEN, spec in TAKEN), (ours, theirs)
