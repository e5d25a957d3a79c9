"""Writes everything that is generated from the declarations: ``make gen``; with ``--check`` it only says what is stale.

A target owns a folder: it gives each file's text, and a file that it no longer gives is removed. Files of that folder
that somebody else writes are named in ``foreign``.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from paddock.app.operator import neededrights
from paddock.cli.monitoring import grafana
from paddock.fleet.diagnosis import page as why
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.generate import files, reference
from paddock.kubernetes.schema.kind import KindFacts
from tools import migrationpairs, pictures, upstream
from tools.commandpages import completion, man, markdown
from tools.kubevirtsupport import table
from tools.referencepages import admission, dialects, figures, functional, homes, metrics, reported, settings, tried
from tools.webtypes import typescript

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Target:
    """``produce`` gives path below ``folder`` -> text, the same for the same declarations."""

    folder: str
    produce: Callable[[], Mapping[str, str]]
    foreign: frozenset[str] = frozenset()


class State(StrEnum):
    MISSING = "missing"
    STALE = "stale"
    SURPLUS = "surplus"


@dataclass(frozen=True, slots=True)
class Difference:
    """``text`` is what the file should hold, or None when it should not be there."""

    path: Path
    state: State
    text: str | None


def reference_pages() -> Mapping[str, str]:
    """The pages of all dialects; a dialect introduces itself with the first paragraph of its package's text."""
    kinds = catalog.every()
    names = dict.fromkeys(kind.dialect for kind in kinds)
    texts = {name: catalog.package(name).__doc__ or "" for name in names}
    pages = files.reference_pages(kinds, {name: " ".join(text.split("\n\n")[0].split()) for name, text in texts.items()}, whole={"core"})
    return {
        **pages,
        "kubevirt-fields.md": table.page(reference.HEADER),
        "why.md": why.page(reference.HEADER),
        "commands.md": markdown.page(),
        "settings.md": settings.page(),
        "events.md": reported.events_page(),
        "conditions.md": reported.conditions_page(),
        "metrics.md": metrics.page(),
        "homes.md": homes.page(),
        "dialects.md": dialects.page(),
        "tried.md": tried.page(),
        "figures.md": figures.page(),
        "migrations.md": migrationpairs.page(),
    }


def evidence_pages() -> Mapping[str, str]:
    """The pages about tests that other projects wrote, and about what was measured."""
    return {
        "upstream-tests.md": upstream.page(upstream.read(ROOT / "tests" / "upstream")),
        "kubevirt-tests.md": functional.page(),
        "kubevirt-admission.md": admission.page(),
        "performance.md": figures.measurements(),
    }


def kind_facts() -> Mapping[str, str]:
    """The facts that a server knows of every kind without loading its declaration."""
    facts = msgspec.convert(catalog.every(), tuple[KindFacts, ...], from_attributes=True)
    return {"kinds.json": msgspec.json.format(msgspec.json.encode(facts)).decode() + "\n"}


def chart_definitions() -> Mapping[str, str]:
    """The definitions that the operator's chart brings: of the front doors whose objects a cluster can keep."""
    return {
        name: text for name, text in files.crds(catalog.every()).items() if name.split("/")[0] in {each.name for each in catalog.fronts()}
    }


_CHARTS = ROOT / "deploy" / "helm"
# What the chart that is named as in the Vitistack document has of its own; the rest is the chart paddock's.
_CHARTS_OWN = frozenset({".helmignore", "Chart.yaml", "values.yaml", "rules/vitistack.yaml", "templates/_names.tpl"})


def chart_rules() -> Mapping[str, str]:
    """The rights of the chart: those that the operator asks for."""
    return {f"{name}.yaml": path.read_text(encoding="utf-8") for name, path in sorted(neededrights.roles().items())}


def chart_dashboards() -> Mapping[str, str]:
    """The dashboards that the chart can bring."""
    return {name: text for name, text in grafana.files().items() if name == "operator.json"}


def documented_chart() -> Mapping[str, str]:
    """The chart kubevirt-operator: the templates and rights of the chart paddock, under the names of the document."""
    source = _CHARTS / "paddock"
    paths = [source / "values.schema.json", *sorted((source / "templates").rglob("*"))]
    shared = {path.relative_to(source).as_posix(): path for path in paths if path.is_file()}
    return {
        **{name: path.read_text(encoding="utf-8") for name, path in shared.items() if name not in _CHARTS_OWN},
        **{f"rules/{name}": text for name, text in chart_rules().items() if f"rules/{name}" not in _CHARTS_OWN},
        **{f"definitions/{name}": text for name, text in chart_definitions().items()},
        **{f"dashboards/{name}": text for name, text in chart_dashboards().items()},
    }


def kustomize_definitions() -> Mapping[str, str]:
    """The definitions of the dialects that the kustomize base has: those of the chart by default."""
    usual = {each.name for each in catalog.fronts() if each.is_by_default}
    found = {name: text for name, text in chart_definitions().items() if name.split("/")[0] in usual}
    lines = ["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization", "resources:", *(f"  - {name}" for name in sorted(found))]
    return {**found, "kustomization.yaml": "\n".join(lines) + "\n"}


def documented_definitions() -> Mapping[str, str]:
    """The definitions of Vitistack's kinds, in one folder as the document has them."""
    return {name.rpartition("/")[2]: text for name, text in chart_definitions().items() if name.split("/")[0] == "vitistack"}


# Pages that long runs or people write, among those that are generated.
_EVIDENCE = frozenset({"conformance.md", "console.md", "controller-runtime.md", "kubernetes-conformance.md"})
_REFERENCE = frozenset({"on-disk.md", "providers.md"})
TARGETS: Sequence[Target] = (
    Target("api/crds", lambda: files.crds(catalog.every())),
    Target("api/openapi", lambda: files.openapi_documents(catalog.every())),
    Target("api/jsonschema", lambda: files.json_schemas(catalog.every())),
    Target("deploy/helm/kubevirt-operator", documented_chart, foreign=_CHARTS_OWN),
    Target("deploy/helm/paddock/dashboards", chart_dashboards),
    Target("deploy/helm/paddock/definitions", chart_definitions),
    Target("deploy/helm/paddock/rules", chart_rules),
    Target("deploy/kubevirt-operator/config/crd", documented_definitions),
    Target("deploy/kustomize/definitions", kustomize_definitions),
    Target("deploy/man", man.pages),
    Target("docs/pictures", pictures.pictures),
    Target("src/paddock/cli/completion/facts", completion.files),
    Target("src/paddock/kubernetes/facts", kind_facts),
    Target("docs/evidence", evidence_pages, foreign=_EVIDENCE),
    Target("docs/reference", reference_pages, foreign=_REFERENCE),
    Target("web/src/generated", typescript.files),
)


def differences(root: Path, targets: Sequence[Target]) -> Iterator[Difference]:
    for target in targets:
        folder = root / target.folder
        wanted = {folder / name: text for name, text in target.produce().items()}
        for path, text in sorted(wanted.items()):
            if not path.exists():
                yield Difference(path, State.MISSING, text)
            elif path.read_bytes() != text.encode():
                yield Difference(path, State.STALE, text)
        present = (path for path in folder.rglob("*") if path.is_file())
        for path in sorted(present):
            if path not in wanted and path.relative_to(folder).as_posix() not in target.foreign:
                yield Difference(path, State.SURPLUS, None)


def settle(difference: Difference) -> None:
    if difference.text is None:
        difference.path.unlink()
        return
    difference.path.parent.mkdir(parents=True, exist_ok=True)
    difference.path.write_bytes(difference.text.encode())


def is_stale(difference: Difference) -> bool:
    """Return True if a file has to be written again. Days of recorded runs alone are no reason: those of the page are still true."""
    if difference.state is not State.STALE or difference.path.name != "tried.md":
        return True
    there, wanted = difference.path.read_text(encoding="utf-8"), difference.text or ""
    return tried.without_days(there) != tried.without_days(wanted)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not as generated")
    options = parser.parse_args(arguments)
    found = [each for each in differences(ROOT, TARGETS) if not options.check or is_stale(each)]
    for difference in found:
        print(f"gen: {difference.state}: {difference.path.relative_to(ROOT)}")
        if not options.check:
            settle(difference)
    if found and options.check:
        print("gen: `make gen` puts this right; commit what it writes")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
