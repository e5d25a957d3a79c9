"""The manifests of the guides to VirtRigaud and its providers can be applied as they stand there."""

from typing import Any

import pytest

from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests import load
from paddock.kubernetes.schema.finding import Severity, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.kit.pages import ROOT, Block, blocks

PAGES = (ROOT / "docs/dialects/virtrigaud.md", *sorted((ROOT / "docs/providers").glob("*.md")))
MANIFESTS = [block for page in PAGES for block in blocks(page) if block.language == "yaml"]
# What a block completes that shows a part of a Provider.
PROVIDER: dict[str, Any] = {
    "apiVersion": "infra.virtrigaud.io/v1beta1",
    "kind": "Provider",
    "metadata": {"name": "lab"},
    "spec": {"type": "qemu", "endpoint": "qemu:///system", "credentialSecretRef": {"name": "none"}, "runtime": {"image": "none:1"}},
}


def problems(document: dict[str, Any]) -> list[str]:
    found = admission.admit(document, AdmissionSettings()).findings
    return [f"{format_path(each.path)}: {each.message}" for each in found if each.severity is Severity.ERROR]


def completed(document: dict[str, Any]) -> dict[str, Any]:
    if "kind" in document:
        return document
    return {key: {**each, **document.get(key, {})} if isinstance(each, dict) else each for key, each in PROVIDER.items()}


@pytest.mark.parametrize("block", MANIFESTS, ids=lambda block: f"{block.page.name}:{block.line}")
def test_a_manifest_is_taken(block: Block) -> None:
    documents = list(load.load(block.text.encode(), block.page.name))
    assert documents
    assert [problem for each in documents for problem in problems(completed(each.data))] == []


def test_each_page_has_one() -> None:
    """A language that nobody reads would let everything above pass."""
    assert {block.page.name for block in MANIFESTS} >= {
        "virtrigaud.md",
        "README.md",
        "libvirt.md",
        "vsphere.md",
        "proxmox.md",
        "firecracker.md",
    }
