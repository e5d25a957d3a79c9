"""CDI itself on the cluster, as an administrator installs it: its images are there, and cdi-operator does the rest.

Its programs come from a clone of its source (`clones.py`). Without one, the stand-in of `storage.py` and `uploads.py` takes its part.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.reference import clones
from tests.reference.build import missing
from tests.reference.cluster import archive, images, storage
from tests.reference.cluster.control import apply, kubectl, wait
from tests.reference.cluster.kubevirt import load_archive
from tests.reference.cluster.namespace import Machine
from tests.reference.recipes import CDI, CDI_LINKED

NAMESPACE = "cdi"
VERSION = "v1.66.0"
RECIPES = (CDI, CDI_LINKED)
_DEPLOY_SECONDS = 1800.0
# the options of its generator of manifests that name images
_IMAGES = {
    **{name: f"cdi-{name}" for name in ("operator", "controller", "importer", "cloner", "apiserver", "uploadproxy", "uploadserver")},
    "ovirt-populator": "cdi-importer",
}


def check() -> None:
    """Raise `NoClone` where it neither was built nor can be."""
    if missing(RECIPES):
        CDI.clone.show("go.mod")


def build(root: Path, say: Callable[[str], None]) -> Mapping[str, Path]:
    """Return its programs, and the script of its cloner. Raises `NoClone`."""
    folders = [clones.built(CDI, say), clones.built(CDI_LINKED, say, linking=_linking(root))]
    return {path.name: path for folder in folders for path in folder.iterdir()}


def load(machine: Machine, tar: Path, programs: Mapping[str, Path]) -> None:
    """Import its image into containerd, with the root in a tar file below its programs."""
    file = machine.directory / "files" / "cdi.tar"
    images.write_cdi(file, archive.measured(tar), programs, VERSION)
    load_archive(machine, file)


def install(machine: Machine, programs: Mapping[str, Path]) -> None:
    """Install it, and return when cdi-operator calls it deployed and the classes of the node say what their claims are."""
    apply(machine, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *_operator(programs["manifest-generator"]))
    wait("the kind CDI", lambda: _applied(machine, _asked_for()))
    wait("CDI", lambda: _phase(machine) == "Deployed", _DEPLOY_SECONDS)
    wait("the profiles of the storage classes", lambda: _applied(machine, *storage.profiles()))


def is_installed(machine: Machine) -> bool:
    """Return whether it is there, and not the stand-in."""
    return bool(kubectl(machine, "get", "deployment", "-n", NAMESPACE, "cdi-operator", "-o", "name", "--ignore-not-found").strip())


def _linking(root: Path) -> Mapping[str, str]:
    """Return the variables with which its programs are linked with the libnbd of the root, whose C library is newer than the host's."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return {
        "PKG_CONFIG_LIBDIR": f"{libraries}/pkgconfig",
        "PKG_CONFIG_SYSROOT_DIR": str(root),
        # The headers of the root's C library must not hide the host's.
        "CGO_CFLAGS": f"-O2 -g -idirafter {root}/usr/include",
        "CGO_LDFLAGS": f"-L{libraries} -Wl,--allow-shlib-undefined",
    }


def _operator(generator: Path) -> Sequence[dict[str, Any]]:
    """Return cdi-operator with its rights and the kind CDI, as its own generator prints them."""
    named = [f"-{option}-image={images.REGISTRY}/{image}:{VERSION}" for option, image in _IMAGES.items()]
    words = ["-resource-type=operator", f"-namespace={NAMESPACE}", f"-operator-version={VERSION}", "-pull-policy=IfNotPresent"]
    said = subprocess.run([generator, *words, *named, "-deploy-cluster-resources=true"], capture_output=True, check=True).stdout
    return [each for each in yaml.safe_load_all(said) if each]


def _asked_for() -> dict[str, Any]:
    spec = {"config": {"featureGates": ["HonorWaitForFirstConsumer"]}, "imagePullPolicy": "IfNotPresent"}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": {"name": "cdi"}, "spec": spec}


def _applied(machine: Machine, *objects: Mapping[str, Any]) -> bool:
    """Apply objects whose kind may be too new to be served."""
    apply(machine, *objects)
    return True


def _phase(machine: Machine) -> str:
    return kubectl(machine, "get", "cdi", "cdi", "-o", "jsonpath={.status.phase}", "--ignore-not-found")
