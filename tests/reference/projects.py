"""CustomResourceDefinitions of other projects, as they publish them: from the Go module proxy, at fixed versions.

`go mod download` keeps what it fetched in its own cache, outside the repository. Where a project builds its definitions in Go, as
KubeVirt does, its schemas are read out of that source, and the rest of each definition stands here.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paddock.base.errors import Terminal
from tests.reference import cdidefinitions
from tests.reference.build import ENVIRONMENT

Json = dict[str, Any]


class _Loader(yaml.CSafeLoader):
    """Reads a lone equals sign as the text that it is to Kubernetes."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


@dataclass(frozen=True)
class Project:
    """A module and the files in it that hold definitions."""

    module: str
    version: str
    files: tuple[str, ...]


PROJECTS = (
    Project("github.com/cert-manager/cert-manager", "v1.21.2", ("deploy/crds/*.yaml",)),
    Project("github.com/fluxcd/source-controller", "v1.7.0", ("config/crd/bases/*.yaml",)),
    Project("github.com/fluxcd/kustomize-controller", "v1.6.0", ("config/crd/bases/*.yaml",)),
    Project("github.com/fluxcd/helm-controller", "v1.4.0", ("config/crd/bases/*.yaml",)),
    Project("github.com/fluxcd/notification-controller", "v1.6.0", ("config/crd/bases/*.yaml",)),
    Project("github.com/argoproj/argo-cd/v3", "v3.1.0", ("manifests/crds/*-crd.yaml",)),
    Project("sigs.k8s.io/gateway-api", "v1.4.0", ("config/crd/experimental/gateway*.yaml",)),
    Project("github.com/prometheus-operator/prometheus-operator", "v0.85.0", ("example/prometheus-operator-crd/*.yaml",)),
)
# Judged by its documents: its names are our own.
VIRTRIGAUD = Project("github.com/projectbeskar/virtrigaud", "v0.3.11", ("config/crd/bases/*.yaml",))
KUBEVIRT = Project("kubevirt.io/kubevirt", "v1.6.0", ("pkg/virt-operator/resource/generate/components/validations_generated.go",))


class NotFetched(Terminal):
    """A module is not to be had here."""


@cache
def fetched(project: Project) -> Path:
    """The directory of a module, downloaded if it is not there yet."""
    command = ["go", "mod", "download", "-json", f"{project.module}@{project.version}"]
    ran = subprocess.run(command, cwd="/", env={**os.environ, **ENVIRONMENT, "GOFLAGS": "-mod=mod"}, capture_output=True, text=True)
    said = json.loads(ran.stdout or "{}")
    if "Dir" not in said:
        raise NotFetched(f"cannot fetch {project.module} {project.version}", why=said.get("Error") or ran.stderr)
    return Path(said["Dir"])


def definitions() -> Iterator[tuple[str, Json]]:
    """Every definition with where it comes from."""
    for project in PROJECTS:
        yield from of(project)
    yield from kubevirt()
    yield from ((each.origin, each.document) for each in cdidefinitions.definitions())


def of(project: Project) -> Iterator[tuple[str, Json]]:
    """The definitions in a project's files."""
    found = [file for pattern in project.files for file in sorted(fetched(project).glob(pattern))]
    if not found:
        raise NotFetched(f"{project.module} {project.version} has no files like {' '.join(project.files)}")
    for file in found:
        for document in yaml.load_all(file.read_bytes(), Loader=_Loader):
            if document and document.get("kind") == "CustomResourceDefinition":
                yield f"{project.module} {file.name}", document


# Singular name -> kind, plural, group, scope, versions (the last one is stored), subresources.
_KUBEVIRT: dict[str, tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = {
    "kubevirt": ("KubeVirt", "kubevirts", "kubevirt.io", "Namespaced", ("v1alpha3", "v1"), ("status",)),
    "migrationpolicy": ("MigrationPolicy", "migrationpolicies", "migrations.kubevirt.io", "Cluster", ("v1alpha1",), ()),
    "virtualmachine": ("VirtualMachine", "virtualmachines", "kubevirt.io", "Namespaced", ("v1alpha3", "v1"), ("status",)),
    "virtualmachineclone": (
        "VirtualMachineClone",
        "virtualmachineclones",
        "clone.kubevirt.io",
        "Namespaced",
        ("v1alpha1", "v1beta1"),
        ("status",),
    ),
    "virtualmachineclusterinstancetype": (
        *("VirtualMachineClusterInstancetype", "virtualmachineclusterinstancetypes", "instancetype.kubevirt.io", "Cluster"),
        *(("v1alpha1", "v1alpha2", "v1beta1"), ()),
    ),
    "virtualmachineclusterpreference": (
        *("VirtualMachineClusterPreference", "virtualmachineclusterpreferences", "instancetype.kubevirt.io", "Cluster"),
        *(("v1alpha1", "v1alpha2", "v1beta1"), ()),
    ),
    "virtualmachineexport": (
        "VirtualMachineExport",
        "virtualmachineexports",
        "export.kubevirt.io",
        "Namespaced",
        ("v1alpha1", "v1beta1"),
        ("status",),
    ),
    "virtualmachineinstance": ("VirtualMachineInstance", "virtualmachineinstances", "kubevirt.io", "Namespaced", ("v1alpha3", "v1"), ()),
    "virtualmachineinstancemigration": (
        *(
            "VirtualMachineInstanceMigration",
            "virtualmachineinstancemigrations",
            "kubevirt.io",
            "Namespaced",
            ("v1alpha3", "v1"),
            ("status",),
        ),
    ),
    "virtualmachineinstancepreset": (
        "VirtualMachineInstancePreset",
        "virtualmachineinstancepresets",
        "kubevirt.io",
        "Namespaced",
        ("v1", "v1alpha3"),
        (),
    ),
    "virtualmachineinstancereplicaset": (
        *("VirtualMachineInstanceReplicaSet", "virtualmachineinstancereplicasets", "kubevirt.io", "Namespaced"),
        *(("v1alpha3", "v1"), ("status", "scale")),
    ),
    "virtualmachineinstancetype": (
        *("VirtualMachineInstancetype", "virtualmachineinstancetypes", "instancetype.kubevirt.io", "Namespaced"),
        *(("v1alpha1", "v1alpha2", "v1beta1"), ()),
    ),
    "virtualmachinepool": (
        "VirtualMachinePool",
        "virtualmachinepools",
        "pool.kubevirt.io",
        "Namespaced",
        ("v1alpha1",),
        ("status", "scale"),
    ),
    "virtualmachinepreference": (
        *("VirtualMachinePreference", "virtualmachinepreferences", "instancetype.kubevirt.io", "Namespaced"),
        *(("v1alpha1", "v1alpha2", "v1beta1"), ()),
    ),
    "virtualmachinerestore": (
        "VirtualMachineRestore",
        "virtualmachinerestores",
        "snapshot.kubevirt.io",
        "Namespaced",
        ("v1alpha1", "v1beta1"),
        ("status",),
    ),
    "virtualmachinesnapshot": (
        "VirtualMachineSnapshot",
        "virtualmachinesnapshots",
        "snapshot.kubevirt.io",
        "Namespaced",
        ("v1alpha1", "v1beta1"),
        ("status",),
    ),
    "virtualmachinesnapshotcontent": (
        *("VirtualMachineSnapshotContent", "virtualmachinesnapshotcontents", "snapshot.kubevirt.io", "Namespaced"),
        *(("v1alpha1", "v1beta1"), ("status",)),
    ),
}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.labelSelector"}
_SCHEMA = re.compile(r'^\t"(\w+)": `(openAPIV3Schema:.*?)`,$', re.MULTILINE | re.DOTALL)


def kubevirt() -> Iterator[tuple[str, Json]]:
    """Those of KubeVirt, with where each comes from."""
    (source,) = (fetched(KUBEVIRT) / each for each in KUBEVIRT.files)
    schemas = dict(_SCHEMA.findall(source.read_text()))
    # The template of a disk is a part of machines and no kind.
    strange = set(schemas) - set(_KUBEVIRT) - {"datavolumetemplatespec"}
    if strange or not set(_KUBEVIRT) <= set(schemas):
        raise NotFetched(f"{KUBEVIRT.module} {KUBEVIRT.version} has other kinds than expected", why=f"{sorted(strange)}")
    for singular, (kind, plural, group, scope, names, below) in _KUBEVIRT.items():
        schema = yaml.load(schemas[singular], Loader=_Loader)
        subresources = {each: _SCALE if each == "scale" else {} for each in below}
        versions = [
            {"name": each, "served": True, "storage": each == names[-1], "schema": schema, "subresources": subresources} for each in names
        ]
        yield (
            f"{KUBEVIRT.module} {singular}",
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "scope": scope,
                    "names": {"kind": kind, "plural": plural, "singular": singular},
                    "versions": versions,
                },
            },
        )
