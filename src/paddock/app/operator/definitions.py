"""Checks that an API serves the kinds that the controllers need, and that its definitions are the ones they know.

Asked before anything acts: a front kind that Crossplane serves from a definition of its own has an owner already, and two of them
would undo each other's work for ever. What is only missing may still come, so it is waited for and named.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.shape import ObjectShape, shape_of
from paddock.kubernetes.targets import kind_target

DEFINITIONS = kind_target("apiextensions.k8s.io", "CustomResourceDefinition")
# API group -> the dialect whose front kinds are in it
FRONT_GROUPS = {each.group: each.name for each in catalog.fronts()}
_INSTALL = {
    "kubevirt.io": "install KubeVirt",
    "pool.kubevirt.io": "install KubeVirt",
    "cdi.kubevirt.io": "install CDI, KubeVirt's Containerized Data Importer",
}

_KEEP_OUT = "leave this dialect out (--dialect), or use a cluster without that project"
# Members of the spec that every release of Paddock has declared: a definition that lacks one is no older one of Paddock's.
_ALWAYS = {name: member for each in catalog.every_dialect() for name, member in each.always.items()}
# Kinds that some releases serve in an older version only, which has the same form.
_OLDER = {"virtualmachinepools.pool.kubevirt.io/v1beta1": "v1alpha1"}


class ForeignDefinition(Terminal):
    """A front kind belongs to somebody else."""

    def __init__(self, name: str, owner: str) -> None:
        super().__init__(
            f"cannot look after {name}",
            why=f"its definition belongs to {owner}, which looks after its objects itself",
            fix="leave this dialect out (--dialect), or take the definition away from Crossplane",
        )
        self.name = name


class _Listed(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Listed] | None = None


async def problems(client: Client, targets: Iterable[Target[Any]]) -> tuple[str, ...]:
    """Return the problems of these kinds' controllers, each with its remedy. Raises `ForeignDefinition`, and the client's errors."""
    found: list[str] = []
    missing: list[Target[Any]] = []
    foreign: set[str] = set()
    by_version: dict[tuple[str, str], list[Target[Any]]] = {}
    for each in targets:
        by_version.setdefault((each.group, each.version), []).append(each)
    for (group, version), those in sorted(by_version.items()):
        served = await _served(client, group, version)
        for target in sorted(those, key=lambda each: each.plural):
            if target.plural not in served:
                missing.append(target)
            elif group in FRONT_GROUPS and (problem := await _definition_problem(client, target)) is not None:
                found.append(problem.text)
                foreign |= {group} if problem.is_foreign else set()
    # One command installs all definitions of a group, and would replace those that are another project's.
    ways = {
        each.group: f"another project has definitions of {each.group}: {_KEEP_OUT}" if each.group in foreign else remedy(each.group)
        for each in missing
    }
    return (*(f"{each.qualified}/{each.version} is not served: {ways[each.group]}" for each in missing), *found)


async def older(client: Client, targets: Iterable[Target[Any]]) -> Sequence[tuple[Target[Any], str]]:
    """The kinds that the API does not have in the version that is wanted, but in an older one that will do; and which that is."""
    found = []
    for each in targets:
        version = _OLDER.get(f"{each.qualified}/{each.version}", "")
        if not version or each.plural in await _served(client, each.group, each.version):
            continue
        if each.plural in await _served(client, each.group, version):
            found.append((each, version))
    return found


def remedy(group: str) -> str:
    """Return the command that installs the kinds of a group."""
    if group in FRONT_GROUPS:
        return f"paddock crds --dialect {FRONT_GROUPS[group]} | kubectl apply --server-side -f -"
    return _INSTALL.get(group, f"install what serves {group or 'the core group'}")


async def _served(client: Client, group: str, version: str) -> frozenset[str]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        body = await client.request("GET", path)
    except NotFound:
        return frozenset()
    return frozenset(each.name for each in msgspec.json.decode(body, type=_Resources).resources or ())


class _DefinitionProblem(msgspec.Struct, frozen=True):
    text: str
    # another project's objects are of this kind
    is_foreign: bool = False


async def _definition_problem(client: Client, target: Target[Any]) -> _DefinitionProblem | None:
    try:
        definition = await client.get(DEFINITIONS, Key("", target.qualified))
    except NotFound:
        # It is served by something else than a definition, as by the embedded server while it starts.
        return None
    except Forbidden:
        return _DefinitionProblem(f"cannot see whose {target.qualified} is: allow get of customresourcedefinitions to the operator")
    owner = claimed_by(definition)
    if owner:
        raise ForeignDefinition(target.qualified, owner)
    lacking, unknown = lacks(definition, target), adds(definition, target)
    always = f"spec.{_ALWAYS.get(target.qualified, '')}"
    if lacking and (unknown or always in lacking):
        has = f"it has {', '.join(unknown)} and lacks" if unknown else "it lacks"
        said = f"the definition of {target.qualified} is another project's: {has} {', '.join(lacking)}"
        return _DefinitionProblem(f"{said}; {_KEEP_OUT}", is_foreign=True)
    if lacking:
        said = f"the definition of {target.qualified} is older than this operator: it lacks {', '.join(lacking)}"
        return _DefinitionProblem(f"{said}; {remedy(target.group)}")
    return None


def claimed_by(definition: Data) -> str:
    """The composition that a definition is made from; empty for one that stands for itself."""
    for owner in definition["metadata"].get("ownerReferences") or ():
        if owner.get("apiVersion", "").partition("/")[0].endswith("crossplane.io"):
            return f"{owner.get('kind')} {owner.get('name')} of Crossplane"
    return ""


def lacks(definition: Data, target: Target[Any]) -> tuple[str, ...]:
    """Members of the spec that the controllers know and a definition does not have."""
    known, defined = _members(definition, target)
    return tuple(f"spec.{name}" for name in sorted(known - defined))


def adds(definition: Data, target: Target[Any]) -> tuple[str, ...]:
    """Members of the spec that a definition has and the controllers do not know."""
    known, defined = _members(definition, target)
    return tuple(f"spec.{name}" for name in sorted(defined - known))


def _members(definition: Data, target: Target[Any]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the members of the spec that the controllers know, and those that a definition has; nothing where either is open."""
    version: Data = next((each for each in definition["spec"]["versions"] if each["name"] == target.version), {})
    spec = version.get("schema", {}).get("openAPIV3Schema", {}).get("properties", {}).get("spec", {})
    if spec.get("x-kubernetes-preserve-unknown-fields") or not issubclass(target.cls, Object):
        return frozenset(), frozenset()
    declared = shape_of(target.cls).properties.get("spec")
    if declared is None or not isinstance(declared.shape, ObjectShape):
        return frozenset(), frozenset()
    return frozenset(declared.shape.properties), frozenset(spec.get("properties", {}))
