"""The API of older releases of KubeVirt, beside what their makers' programs define, and as kubectl and virtctl see it."""

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes import catalog, releases
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import Kind
from tests.reference import recipes
from tests.reference.build import Binaries, built
from tests.reference.embedded import serving
from tests.reference.test_simulated import MACHINE, Program
from tools import kubevirtgates, kubevirtreleases

pytestmark = [pytest.mark.reference, pytest.mark.long]

PROGRAMS = {9: recipes.KUBEVIRT, **{int(name[2:]): recipe for name, recipe in recipes.OLDER_KUBEVIRTS.items()}}
KINDS = {each.kind: each for each in catalog.every() if each.dialect == "kubevirt" and "cdi" not in each.group}
KNOWN = [(release, kind) for release in PROGRAMS for kind in KINDS if releases.versions_of(KINDS[kind], release)]
# What Paddock's controllers keep in the status of a machine, and what older releases had and the newest has no more.
KEPT = {"status.instancetypeRef", "status.preferenceRef", "status.volumeUpdateState"}
_CONSTRAINTS = ("type", "required", "default", "enum", "pattern", "minimum", "maximum", "format")
# Names in references get an empty text by default from 1.4 on, numbers that controllers write became wider, and some have a minimum.
_UNIMITATED = {
    ("default", "name"),
    *((word, name) for word in ("minimum", "maximum", "format") for name in ("VSOCKCID", "checksum")),
    ("minimum", "memoryOvercommit"),
    ("minimum", "replicas"),
    ("enum", "targetReadinessPolicy"),
}
# Paddock warns of presets in the stored version alone.
_NOT_DEPRECATED = ("VirtualMachineInstancePreset", "v1")
Ways = dict[str, dict[str, Any]]


@cache
def definitions(release: int) -> dict[str, dict[str, Any]]:
    """Return the definitions of a release by kind, as its own program prints them."""
    program = built(PROGRAMS[release], say=print) / "installation"
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    found = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {each["spec"]["names"]["kind"]: each for each in found if each["kind"] == "CustomResourceDefinition"}


def ways(schema: dict[str, Any], way: str = "") -> Ways:
    """Return the members of a schema by their way; entries of lists and values of maps have the way of the list or map."""
    found: Ways = {}
    for name, each in schema.get("properties", {}).items():
        found[f"{way}{name}"] = each
        found |= ways(each, f"{way}{name}.")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found |= ways(schema[word], way)
    return found


def theirs(release: int, kind: str) -> Ways:
    (schema, *others) = (each["schema"]["openAPIV3Schema"] for each in definitions(release)[kind]["spec"]["versions"])
    assert all(each == schema for each in others), "versions of one kind have one schema"
    return ways(schema)


def ours(release: int, kind: Kind) -> Ways:
    fields, schema = releases.fields_of(kind, release), crd.schema(kind)
    return ways(fields.schema(schema) if fields is not None else schema)


@pytest.mark.spec("kubevirt", 237)
@pytest.mark.parametrize(("release", "kind"), KNOWN)
def test_fields_are_those_of_the_release(release: int, kind: str) -> None:
    """What both the newest release and Paddock know, is known exactly where the release knows it."""
    shared = theirs(9, kind).keys() & ours(9, KINDS[kind]).keys()
    kept = {way for way in shared if any(f"{way}.".startswith(f"{each}.") for each in KEPT)} if kind == "VirtualMachine" else set()
    known = theirs(release, kind).keys()
    assert {way for way in ours(release, KINDS[kind]) if way in shared} - kept == (known & shared) - kept


@pytest.mark.spec("kubevirt", 237)
@pytest.mark.parametrize(("release", "kind"), [each for each in KNOWN if each[0] < 9])
def test_nothing_else_differs_that_is_not_known(release: int, kind: str) -> None:
    """What fields of both releases may hold differs in places that have no effect, or where Paddock asks what the stricter one does."""
    older, newest, served = theirs(release, kind), theirs(9, kind), ours(release, KINDS[kind])
    for way in older.keys() & newest.keys() & served.keys():
        for word in _CONSTRAINTS:
            if older[way].get(word) == newest[way].get(word) or (word, way.rpartition(".")[2]) in _UNIMITATED:
                continue
            if word == "default":
                assert served[way].get(word) == older[way].get(word), f"{way} has another default"
                continue
            assert word == "required", f"{way} has another {word}"
            assert set(older[way].get("required", ())) <= set(served[way].get("required", ())), f"{way} requires other members"


@pytest.mark.spec("kubevirt", 238)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", PROGRAMS)
def test_versions_are_those_of_the_release(release: int, kind: str) -> None:
    """A kind that a release does not have is served in no version."""
    defined = definitions(release).get(kind)
    served = [each for each in defined["spec"]["versions"] if each["served"]] if defined is not None else []
    said = {each["name"]: bool(each.get("deprecated")) and (kind, each["name"]) != _NOT_DEPRECATED for each in served}
    assert {each.name: bool(each.deprecated) for each in releases.versions_of(KINDS[kind], release)} == said


def test_the_facts_are_current() -> None:
    found = kubevirtreleases.facts(kubevirtreleases.downloaded())
    assert kubevirtreleases.TARGET.read_text() == kubevirtreleases.text(found), "write it anew: python -m tools.kubevirtreleases"


@pytest.mark.spec("kubevirt", 240)
def test_gates_have_the_lives_that_the_releases_give_them() -> None:
    assert list(kubevirtgates.differences(kubevirtgates.downloaded())) == []


@pytest.fixture(scope="module", params=["1.3", "1.6", "1.9"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kubeconfig(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp(f"release-{release}") / "server"
    with serving(folder, "--guests", "simulated", "--as-kubevirt", release, command="up") as server:
        yield server.kubeconfig


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The real kubectl."""
    return Program(binaries.kubectl, kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.mark.spec("kubevirt", 236)
@pytest.mark.parametrize("virtctl", recipes.VIRTCTLS)
def test_virtctl_tells_the_release(
    virtctl: str, release: str, kubeconfig: Path, kubectl: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = Program(built(recipes.VIRTCTLS[virtctl], say=print) / "virtctl", kubeconfig, tmp_path_factory.mktemp("virtctl"))
    assert f'Server Version: version.Info{{GitVersion:"v{release}.0+paddock.' in program.ok("version")
    kubectl.ok("apply", "-f", "-", text=MACHINE.replace("NAME", "asked"))
    kubectl.ok("wait", "vm/asked", "--for=condition=Ready", "--timeout=30s")
    program.ok("restart", "asked")
    kubectl.ok("delete", "vm", "asked", "--wait", "--timeout=30s")


@pytest.mark.spec("kubevirt", 237)
def test_kubectl_validates_as_the_release(kubectl: Program, release: str) -> None:
    later = MACHINE.replace("NAME", "later").replace(
        "      domain:\n", "      domain:\n        ioThreads: {supplementalPoolThreadCount: 2}\n"
    )
    strict, lenient = kubectl.run("apply", "-f", "-", text=later), kubectl.run("apply", "--validate=warn", "-f", "-", text=later)
    explained = kubectl.run("explain", "vm.spec.template.spec.domain.ioThreads")
    if release == "1.3":
        assert strict.returncode and 'unknown field "spec.template.spec.domain.ioThreads"' in strict.stderr
        assert 'unknown field "spec.template.spec.domain.ioThreads"' in lenient.stderr and explained.returncode
        assert not kubectl.ok("get", "vm", "later", "-o", "jsonpath={.spec.template.spec.domain.ioThreads}")
    else:
        assert not strict.returncode and not lenient.returncode and not explained.returncode
    kubectl.ok("delete", "vm", "later", "--wait", "--timeout=30s")


@pytest.mark.spec("kubevirt", 238)
def test_kubectl_lists_what_the_release_serves(kubectl: Program, release: str) -> None:
    """The versions are those of the release's own sources; the one that is listed is the one that clients prefer."""
    sources = kubevirtreleases.downloaded()[int(release.rpartition(".")[2])].versions()
    listed = {line.split()[-1]: line.split()[-3] for line in kubectl.ok("api-resources", "--no-headers").splitlines()}
    known = {kind: set(sources[name.lower()]) for name, kind in KINDS.items() if name.lower() in sources}
    assert len(known) >= len(kubevirtreleases.RELEASES)
    for kind, served in known.items():
        assert listed[kind.kind].removeprefix(f"{kind.group}/") in served, f"{kind.kind} is listed as {listed[kind.kind]}"
        found = json.loads(kubectl.ok("get", "--raw", f"/apis/{kind.group}"))
        others = {each["version"] for each in found["versions"]} - served
        for version in served | others:
            resources = json.loads(kubectl.ok("get", "--raw", f"/apis/{kind.group}/{version}"))["resources"]
            assert (kind.plural in {each["name"] for each in resources}) == (version in served), f"{kind.plural} in {version}"
