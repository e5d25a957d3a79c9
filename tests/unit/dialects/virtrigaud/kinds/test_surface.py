"""The kinds as clients see them: names, columns, the scale subresource, defaults, and the treatment of unknown fields."""

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import FieldValidation, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.unit.dialects.virtrigaud.kinds.objects import KINDS, admitted, said, thing

GROUP = "infra.virtrigaud.io"
# Plural, short name and columns of each kind, as the tables of the specification have them.
TABLE: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "VirtualMachine": (
        "virtualmachines",
        "vm",
        (
            ("Phase", ".status.phase"),
            ("Provider", ".spec.providerRef.name"),
            ("Class", ".spec.classRef.name"),
            ("Image", ".spec.imageRef.name"),
            ("IPs", ".status.ips[*]"),
        ),
    ),
    "VMClass": (
        "vmclasses",
        "vmclass",
        (
            ("CPU", ".spec.cpu"),
            ("Memory", ".spec.memory"),
            ("Firmware", ".spec.firmware"),
            ("Used By", ".status.usedByVMs"),
        ),
    ),
    "VMImage": (
        "vmimages",
        "vmimg",
        (
            ("Ready", ".status.ready"),
            ("Phase", ".status.phase"),
            ("Size", ".status.size"),
            ("Providers", ".status.availableOn[*]"),
        ),
    ),
    "VMNetworkAttachment": (
        "vmnetworkattachments",
        "vmnet",
        (
            ("Ready", ".status.ready"),
            ("Type", ".spec.network.type"),
            ("Connected VMs", ".status.connectedVMs"),
            ("Providers", ".status.availableOn[*]"),
        ),
    ),
    "Provider": (
        "providers",
        "prov",
        (
            ("Type", ".spec.type"),
            ("Endpoint", ".spec.endpoint"),
            ("Healthy", ".status.healthy"),
            ("Connected VMs", ".status.connectedVMs"),
        ),
    ),
    "VMSnapshot": (
        "vmsnapshots",
        "vmsnap",
        (
            ("VM", ".spec.vmRef.name"),
            ("Phase", ".status.phase"),
            ("Size", ".status.size"),
            ("Created", ".status.creationTime"),
            ("Expires", ".status.expiryTime"),
        ),
    ),
    "VMClone": (
        "vmclones",
        "vmclone",
        (
            ("Source", ".spec.source.vmRef.name"),
            ("Target", ".spec.target.name"),
            ("Phase", ".status.phase"),
            ("Clone Type", ".status.actualCloneType"),
            ("Progress", ".status.progress.overallPercentage"),
        ),
    ),
    "VMMigration": (
        "vmmigrations",
        "vmmig",
        (
            ("Source", ".spec.source.vmRef.name"),
            ("Target", ".spec.target.name"),
            ("Phase", ".status.phase"),
            ("Progress", ".status.progress.percentage"),
        ),
    ),
    "VMSet": (
        "vmsets",
        "vmset",
        (
            ("Desired", ".spec.replicas"),
            ("Current", ".status.replicas"),
            ("Ready", ".status.readyReplicas"),
            ("Updated", ".status.updatedReplicas"),
        ),
    ),
    "VMPlacementPolicy": (
        "vmplacementpolicies",
        "vmpp",
        (
            # Names: the list itself would print as objects.
            ("Used By VMs", ".status.usedByVMs[*].name"),
            ("Priority", ".spec.priority"),
            ("Successful", ".status.placementStats.successfulPlacements"),
            ("Failed", ".status.placementStats.failedPlacements"),
        ),
    ),
}
# What a CRD has for a column that is no text.
TYPES = {
    ("VMClass", "CPU"): "integer",
    ("VMClass", "Used By"): "integer",
    ("VMImage", "Ready"): "boolean",
    ("VMNetworkAttachment", "Ready"): "boolean",
    ("VMNetworkAttachment", "Connected VMs"): "integer",
    ("Provider", "Healthy"): "boolean",
    ("Provider", "Connected VMs"): "integer",
    ("VMSnapshot", "Created"): "date",
    ("VMSnapshot", "Expires"): "date",
    ("VMSet", "Desired"): "integer",
    ("VMSet", "Current"): "integer",
    ("VMSet", "Ready"): "integer",
    ("VMSet", "Updated"): "integer",
    ("VMPlacementPolicy", "Priority"): "integer",
    ("VMPlacementPolicy", "Successful"): "integer",
    ("VMPlacementPolicy", "Failed"): "integer",
}


def declared(kind: str) -> Kind:
    found = catalog.find(GROUP, kind)
    assert found is not None
    return found


def test_there_are_ten_kinds() -> None:
    assert {kind for group, kind in catalog.known() if group == GROUP} == set(TABLE) == set(KINDS)


@pytest.mark.parametrize("kind", TABLE)
def test_names(kind: str) -> None:
    found = declared(kind)
    plural, short, _ = TABLE[kind]
    assert (found.plural, found.short_names, found.api_version) == (plural, (short,), f"{GROUP}/v1beta1")
    assert found.namespaced and found.status
    assert [(version.name, version.storage) for version in found.versions] == [("v1beta1", True)]


@pytest.mark.spec("virtrigaud", 2)
@pytest.mark.parametrize("kind", TABLE)
def test_columns(kind: str) -> None:
    (version,) = crd.manifest(declared(kind))["spec"]["versions"]
    printed = version["additionalPrinterColumns"]
    assert [(column["name"], column["jsonPath"]) for column in printed] == [
        *TABLE[kind][2],
        ("Age", ".metadata.creationTimestamp"),
    ]
    for column in printed[:-1]:
        assert column["type"] == TYPES.get((kind, column["name"]), "string"), column["name"]
    assert all("priority" not in column for column in printed)


def test_only_sets_scale() -> None:
    subresources = {kind: crd.manifest(declared(kind))["spec"]["versions"][0]["subresources"] for kind in TABLE}
    assert [kind for kind, found in subresources.items() if "scale" in found] == ["VMSet"]
    assert subresources["VMSet"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    assert admitted("VMSet", {"status": {"selector": "app=web", "replicas": 1}}).accepted


@pytest.mark.spec("virtrigaud", 4)
@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields(kind: str) -> None:
    raw = thing(kind, {".colour": "red"})
    strict = admit(raw, AdmissionSettings(), FieldValidation.STRICT)
    assert not strict.accepted
    assert [(field, message[:28]) for field, message in said(strict)] == [("spec.colour", 'unknown field "spec.colour"')]
    lenient = admit(raw, AdmissionSettings(), FieldValidation.WARN)
    assert lenient.accepted
    assert "colour" not in lenient.data["spec"]
    assert ("spec.colour", 'unknown field "spec.colour"') in [
        (field, message.split(";")[0]) for field, message in said(lenient, Severity.WARNING)
    ]
