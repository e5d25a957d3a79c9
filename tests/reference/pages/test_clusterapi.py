"""Cluster API's core controllers, as docs/testing/cluster-api.md uses them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reference import projects, recipes
from tests.reference.build import Binaries, Recipe
from tests.reference.embedded import Embedded
from tests.reference.pages.conftest import DOCS, ended, on_path, reading

# The build takes minutes of processor time.
pytestmark = [pytest.mark.reference, pytest.mark.soak]
MODULE = projects.Project("sigs.k8s.io/cluster-api", recipes.CLUSTER_API.version, ())


def test_the_page(server: Embedded, binaries: Binaries, program: Callable[[Recipe], Path], tmp_path: Path) -> None:
    one = reading(server, binaries, tmp_path / "reader", program(recipes.CLUSTER_API), on_path("openssl"), on_path("curl"))
    components = [str(binaries.kubectl), "kustomize", str(projects.fetched(MODULE) / "core" / "config" / "default")]
    (one.folder / "core-components.yaml").write_bytes(subprocess.run(components, stdout=subprocess.PIPE, check=True).stdout)
    with ended(one.folder / "manager.pid"):
        one.follow(DOCS / "testing/cluster-api.md")


def test_the_page_names_the_version() -> None:
    assert recipes.CLUSTER_API.version in (DOCS / "testing/cluster-api.md").read_text()
