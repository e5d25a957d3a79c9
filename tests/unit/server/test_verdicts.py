"""`validate` and the server agree on every document of the examples, the guides and the suites: refused or taken, and warned of what."""

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.coroutines import scripted
from tests.kit import examplefiles
from tests.kit.servers.apiharness import Harness
from tests.unit.kubevirt.kinds import objects
from tests.unit.kubevirt.kinds.test_rules import CASES

ROOT = Path(__file__).parents[3]
FILES = sorted([*examplefiles.examples(), *ROOT.glob("tests/**/*.yaml"), *ROOT.glob("deploy/**/*.yaml")])
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_FENCED = re.compile(r"^```ya?ml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_WARNING = re.compile(r'299 - "(.*)"\Z', re.DOTALL)
# What only one side can know, by the beginning of what it says; each with the reason.
EXPLAINED: Mapping[str, str] = {
    "spec.instancetype": "the server has an instancetype or not; a manifest may be applied before its own",
    "spec.preference": "as instancetypes",
    "spec.virtualMachineTemplate.spec.instancetype": "as in a machine",
    "spec.virtualMachineTemplate.spec.preference": "as in a machine",
    "spec.vmiName": "the server has the instance or not, as above",
    "status.": "the server takes no status with a new object, and so finds nothing wrong in it",
}


class Verdict(msgspec.Struct, frozen=True):
    """The acceptance or refusal of a document, with the warnings."""

    accepted: bool
    warnings: frozenset[str]
    told: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Verdict) and (self.accepted, self.warnings) == (other.accepted, other.warnings)


def texts() -> Iterator[tuple[str, str]]:
    """Every text of documents, with its place."""
    for path in FILES:
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")
    for path in PAGES:
        for number, match in enumerate(_FENCED.finditer(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(ROOT).as_posix()}#{number}", match[1]


def documents() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every object, as it is read offline and as kubectl would send it."""
    for place, text in texts():
        try:
            offline = [each.data for each in load(text.encode(), place)]
            sent = [each for each in yaml.safe_load_all(text) if each is not None]
        except (UnreadableManifest, yaml.YAMLError, ValueError):
            continue
        if len(offline) == len(sent):
            for number, (one, other) in enumerate(zip(offline, sent, strict=True)):
                if isinstance(one, dict) and isinstance(other, dict):
                    yield f"{place}:{number}", one, other


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The machines that the rules of KubeVirt are tested with."""
    for case in CASES:
        for name in case.kinds:
            for which, changes, settings in (
                ("bad", case.bad, case.settings),
                ("good", case.good, case.good_settings if case.good_settings is not None else case.settings),
            ):
                if not settings:
                    machine = objects.machine(changes, name)
                    yield f"{case.number} {case.label} {name} {which}", machine, copy.deepcopy(machine)


def served(document: dict[str, Any]) -> Kind | None:
    """The kind of a document that both sides know."""
    kind = admission.identify(document)[0]
    known = kind is not None and kind.stored and isinstance(document.get("metadata"), dict)
    return kind if known and document["metadata"].get("name") else None


def is_explained(text: str) -> bool:
    return any(text.startswith(place) for place in EXPLAINED)


def offline(document: dict[str, Any], settings: AdmissionSettings) -> Verdict:
    """Return the verdict of `validate` on a document alone."""
    found = admission.admit(document, settings).findings
    errors = [f"{each.field}: {each.message}" for each in found if each.severity is Severity.ERROR and not is_explained(each.field)]
    warnings = [f"{each.field}: {each.message}" for each in found if each.severity is Severity.WARNING]
    return Verdict(not errors, frozenset(each for each in warnings if not is_explained(each)), "; ".join(errors))


async def online(api: Harness, kind: Kind, document: dict[str, Any]) -> Verdict:
    """Return the verdict of the server."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or "default"
    within = f"/namespaces/{namespace}" if kind.namespaced else ""
    if kind.namespaced and isinstance(namespace, str) and namespace != "default":
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    version = document["apiVersion"].rpartition("/")[2]
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    reply = await api.post(f"{root}{within}/{kind.plural}?dryRun=All&fieldValidation=Strict", document)
    warnings = {match[1].replace('\\"', '"').replace("\\\\", "\\") for each in reply.warnings if (match := _WARNING.match(each))}
    # A document before it may have needed that namespace.
    accepted = reply.status < 300 or (kind.kind == "Namespace" and reply.status == 409)
    # A server has the gate on or not, and knows it alone.
    accepted |= str(reply.data.get("message")).endswith(" denied the request: spec: IncrementalBackup feature gate not enabled")
    told = "" if accepted else f"{reply.status} {reply.data.get('message')}"
    causes = (reply.data.get("details") or {}).get("causes") or ()
    if causes and all(is_explained(each.get("field", "")) for each in causes):
        accepted = True
    return Verdict(accepted, frozenset(each for each in warnings if not is_explained(each)), told)


async def disagreements(found: Iterator[tuple[str, dict[str, Any], dict[str, Any]]]) -> tuple[int, list[str]]:
    """Return the number of documents compared, and those on which the sides disagree."""
    count, wrong = 0, []
    async with Harness(settings=AdmissionSettings(trusted=False)) as api:
        for place, one, other in found:
            kind = served(one)
            if kind is None:
                continue
            count += 1
            here, there = offline(one, AdmissionSettings()), await online(api, kind, other)
            if here != there and not (not here.accepted and not there.accepted):
                extra = sorted(here.warnings ^ there.warnings)
                wrong.append(f"{place}: offline {here.accepted} {here.told}; server {there.accepted} {there.told}; {extra}")
    return count, wrong


@pytest.mark.spec("kubevirt", 125)
@scripted
async def test_documents_are_judged_alike() -> None:
    count, wrong = await disagreements(documents())
    assert "\n".join(wrong) == ""
    assert count > 150


@scripted
async def test_machines_of_the_rules_are_judged_alike() -> None:
    count, wrong = await disagreements(cases())
    assert "\n".join(wrong) == ""
    assert count > 300
