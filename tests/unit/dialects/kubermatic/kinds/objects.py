"""The documents' own examples of Kubermatic, and changes of them."""

import copy
from pathlib import Path
from typing import Any

import yaml

import paddock.dialects.kubermatic
from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

EXAMPLES = Path(paddock.dialects.kubermatic.__file__).parent / "examples"
MACHINE, SOURCE = yaml.safe_load_all((EXAMPLES / "virtualmachine.yaml").read_text())
FLAT = next(yaml.safe_load_all((EXAMPLES / "pool.yaml").read_text()))
TEMPLATE = "spec.virtualMachineTemplate.spec"
# A member that is taken away.
GONE = object()
# Base64 of something that could be a certificate: a DER sequence.
BODY = "MIIBgTCCASegAwIBAgIUQsWm5cK5HDzlg0MrKZbx1jLcZq4wCgYIKoZIzj0EAwIw"
OTHER_BODY = "MIIBgjCCASigAwIBAgIUXq1v0yqQyZ3b8m0mYl0m5uO0b3MwCgYIKoZIzj0EAwIw"


def certificate(body: str = BODY) -> str:
    """A certificate in PEM."""
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"


def nested_form() -> dict[str, Any]:
    """The pool of the documents, written as KubeVirt has it."""
    pool: dict[str, Any] = copy.deepcopy(FLAT)
    pool["apiVersion"] = "pool.kubevirt.io/v1beta1"
    given = pool["spec"]["virtualMachineTemplate"]
    spec = given["spec"]
    hardware = {key: spec.pop(key) for key in ("domain", "volumes", "networks")}
    spec["template"] = {"metadata": copy.deepcopy(given["metadata"]), "spec": hardware}
    return pool


NESTED = nested_form()


def changed(raw: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with other values at some places; `GONE` takes a member away."""
    made = copy.deepcopy(raw)
    for path, value in changes.items():
        parts: list[Any] = [int(part) if part.isdigit() else part for part in path.replace("[", ".").replace("]", "").split(".")]
        at: Any = made
        for part in parts[:-1]:
            at = at[part] if isinstance(at, list) else at.setdefault(part, {})
        if value is GONE:
            del at[parts[-1]]
        else:
            at[parts[-1]] = value
    return made


def source(members: dict[str, Any], name: str = "my-http-datasource", **metadata: Any) -> dict[str, Any]:
    """A DataSource."""
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataSource",
        "metadata": {"name": name, **metadata},
        "spec": {"source": members},
    }


def http(url: str = "https://example.com/image.qcow2", **members: Any) -> dict[str, Any]:
    """A source behind a URL."""
    return {"http": {"url": url, **members}}


def admitted(raw: dict[str, Any], **settings: Any) -> AdmissionResult:
    """Return the admission of a document."""
    return admit(raw, AdmissionSettings(**settings))


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    """Places and words of what speaks against a document."""
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


def warnings(admission: AdmissionResult) -> list[tuple[str, str]]:
    """Places and words of the warnings."""
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.WARNING]


def pool_of(raw: dict[str, Any]) -> VirtualMachinePool:
    """The typed pool of a good document."""
    admission = admitted(raw)
    assert errors(admission) == []
    assert isinstance(admission.value, VirtualMachinePool)
    return admission.value


def machine_of(raw: dict[str, Any]) -> VirtualMachine:
    """The typed machine of a good document."""
    admission = admitted(raw)
    assert errors(admission) == []
    assert isinstance(admission.value, VirtualMachine)
    return admission.value


def source_of(raw: dict[str, Any]) -> DataSource:
    """The typed DataSource of a good document."""
    admission = admitted(raw)
    assert errors(admission) == []
    assert isinstance(admission.value, DataSource)
    return admission.value
