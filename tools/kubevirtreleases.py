"""Writes src/paddock/kubernetes/releases.json: how the API of KubeVirt 1.3 to 1.8 differs from that of 1.9.

`python -m tools.kubevirtreleases` reads the sources of each release from the Go module proxy (it needs Go, and the modules once). It keeps
names and numbers, and no prose. Nobody needs it to build or to run: the result is committed, and a reference test compares it.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).resolve().parent.parent / "src" / "paddock" / "kubernetes" / "releases.json"
MODULE = "kubevirt.io/kubevirt"
RELEASES = range(3, 10)
NEWEST = RELEASES[-1]
_COMPONENTS = "pkg/virt-operator/resource/generate/components"
_SCHEMA = re.compile(r'^\t"(\w+)": `(.*?)^`,', re.M | re.S)
_VERSION = re.compile(
    r"Name:\s+(\w+)\.SchemeGroupVersion\.Version,\s+Served:\s+(true|false),\s+Storage:\s+(?:true|false),(\s+Deprecated:\s+true)?"
)
_PATH = re.compile(r'(subresourcesvmi?GVR)?\)?\s*\+?\s*definitions\.SubResourcePath\("([^"]+)"\)')
_STAGE = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?$")
_PLURALS = {"subresourcesvmGVR": "virtualmachines/", "subresourcesvmiGVR": "virtualmachineinstances/", "": ""}
Data = dict[str, Any]


class ReleaseSource:
    """The sources of one release."""

    def __init__(self, root: Path) -> None:
        self.root = root
        components = root / _COMPONENTS
        self._validations = (components / "validations_generated.go").read_text()
        self._definitions = (components / "crds.go").read_text()
        self._paths = (root / "pkg" / "virt-api" / "api.go").read_text()

    def schemas(self) -> dict[str, Data]:
        """Return the schema of each kind, by its singular name."""
        texts = {each[1]: each[2].replace('` + "`" + `', "`") for each in _SCHEMA.finditer(self._validations)}
        return {name: yaml.load(text, Loader=yaml.CSafeLoader)["openAPIV3Schema"] for name, text in texts.items()}

    def versions(self) -> dict[str, dict[str, str]]:
        """Return the served versions of the kinds whose versions changed, each with `deprecated` or an empty text."""
        found = {}
        for text in re.split(r"^func ", self._definitions, flags=re.M):
            name = re.match(r"New(\w+)Crd\(", text)
            served = {each[1]: each[3] for each in _VERSION.finditer(text) if each[2] == "true"}
            if name is not None and served:
                found[name[1].lower()] = {self._word(each): "deprecated" if late else "" for each, late in served.items()}
        return found

    def _word(self, alias: str) -> str:
        """Return the version that an import of `kubevirt.io/api` has at its end."""
        path = re.search(rf'^\t{alias}\s+"kubevirt.io/api/(\S+)"', self._definitions, re.M)
        assert path is not None, f"crds.go does not import {alias}"
        version = path[1].rpartition("/")[2]
        assert _STAGE.match(version), f"{path[1]} is no version"
        return version

    def subresources(self) -> set[str]:
        """Return the paths of virt-api's group, with the plural before them."""
        return {_PLURALS[each[1] or ""] + each[2] for each in _PATH.finditer(self._paths)}


def members(schema: Mapping[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Data]]:
    """Yield each member of a schema with the way to it. Entries of lists have no step of their own, values of maps the step `*`."""
    for name, each in (schema.get("properties") or {}).items():
        yield (*way, name), each
        yield from members(each, (*way, name))
    if isinstance(items := schema.get("items"), dict):
        yield from members(items, way)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from members(values, (*way, "*"))


def facts(sources: Mapping[int, ReleaseSource]) -> Data:
    """Return what changed from release to release."""
    schemas = {release: source.schemas() for release, source in sources.items()}
    by_release = {release: {name: dict(members(schema)) for name, schema in kinds.items()} for release, kinds in schemas.items()}
    kinds: Data = {}
    for name, newest in sorted(by_release[NEWEST].items()):
        if name == "datavolumetemplatespec":
            continue
        older = {release: found[name] for release, found in by_release.items() if name in found}
        said = {"since": min(older)} if min(older) > RELEASES[0] else {}
        said |= _some("later", _tree({way: since for way in newest if (since := _since(way, older)) > min(older)}))
        said |= _some("gone", _gone(older))
        said |= _some("defaults", _defaults(older))
        if said:
            kinds[name] = said
    offered = {release: source.subresources() for release, source in sources.items()}
    later = {path: min(each for each in RELEASES if path in offered[each]) for path in sorted(offered[NEWEST])}
    return {
        "kinds": kinds,
        "versions": _versions({release: source.versions() for release, source in sources.items()}),
        "subresources": {path: since for path, since in later.items() if since > RELEASES[0]},
    }


def _some(name: str, found: Any) -> Data:
    return {name: found} if found else {}


def _since(way: tuple[str, ...], older: Mapping[int, Mapping[tuple[str, ...], Data]]) -> int:
    having = [release for release, found in older.items() if way in found]
    assert having == list(range(having[0], NEWEST + 1)), f"{way} came, went and came again"
    return having[0]


def _tree(later: Mapping[tuple[str, ...], int]) -> Data:
    """Return the ways as a tree. A member that came with the object it is in is not named."""
    tree: Data = {}
    for way, since in sorted(later.items()):
        above = max((later[way[:length]] for length in range(1, len(way)) if way[:length] in later), default=0)
        if since > above:
            at = tree
            for step in way:
                at = at.setdefault(step, {})
            at[""] = since
    return _short(tree)


def _short(tree: Data) -> Data:
    """Return a tree in which a member without further ones is its number alone."""
    own = {"": tree[""]} if "" in tree else {}
    return own | {step: each[""] if each.keys() == {""} else _short(each) for step, each in tree.items() if step}


def _gone(older: Mapping[int, Mapping[tuple[str, ...], Data]]) -> dict[str, int]:
    """Return the members that the newest release lacks, each with the last one that has it."""
    lost = {way: release for release, found in older.items() for way in found if way not in older[NEWEST]}
    return {".".join(way): release for way, release in sorted(lost.items()) if way[:-1] not in lost}


def _defaults(older: Mapping[int, Mapping[tuple[str, ...], Data]]) -> dict[str, int]:
    """Return the members that got a default later than they came, each with the first release that has it. An empty text is none."""
    found: dict[str, int] = {}
    for way, newest in older[NEWEST].items():
        having = [release for release, members_ in older.items() if members_.get(way, {}).get("default") == newest.get("default")]
        if newest.get("default") and min(having) > _since(way, older):
            found[".".join(way)] = min(having)
    return found


def _versions(by_release: Mapping[int, Mapping[str, Mapping[str, str]]]) -> Data:
    """Return the first and the last release that serves each version of a kind, and the first that deprecates it."""
    found: Data = {}
    for name in sorted(by_release[NEWEST]):
        for version in sorted({each for kinds in by_release.values() for each in kinds.get(name, {})}):
            having = {release: kinds[name][version] for release, kinds in by_release.items() if version in kinds.get(name, {})}
            late = [release for release, state in having.items() if state]
            found.setdefault(name, {})[version] = [min(having), max(having), *late[:1]]
    same = [[RELEASES[0], NEWEST]]
    return {name: each for name, each in found.items() if list(each.values()) != same * len(each)}


def downloaded(run: Callable[..., Any] = subprocess.run) -> dict[int, ReleaseSource]:
    """Return the sources of all releases, as Go's own client gets and verifies them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module releases\n")
        found = {}
        for release in RELEASES:
            command = ["go", "mod", "download", "-json", f"{MODULE}@v1.{release}.0"]
            done = run(command, cwd=folder, check=True, capture_output=True, text=True)
            found[release] = ReleaseSource(Path(json.loads(done.stdout)["Dir"]))
        return found


def text(found: Data) -> str:
    """Return the content of the file."""
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(f"{TARGET}\n")
    TARGET.write_text(text(facts(downloaded())))
