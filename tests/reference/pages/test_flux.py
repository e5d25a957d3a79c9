"""Flux's kustomize-controller, as docs/manifests/flux.md uses it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.pages import Reader
from tests.reference import projects, recipes
from tests.reference.build import Recipe, version_of
from tests.reference.client import Api
from tests.reference.pages.conftest import DOCS, OURS, ended, on_path
from tests.reference.pages.gitsources import serving_sources

pytestmark = [pytest.mark.reference, pytest.mark.long]

SOURCES = "source.toolkit.fluxcd.io"
DEFINITIONS = (
    projects.Project("github.com/fluxcd/kustomize-controller", recipes.FLUX.version, ("config/crd/bases/*.yaml",)),
    projects.Project("github.com/fluxcd/source-controller", "v1.9.0", (f"config/crd/bases/{SOURCES}_*.yaml",)),
)
REMOTE = "https://git.example.org/machines"


@pytest.fixture
def definitions(api: Api) -> Iterator[None]:
    """The definitions of Flux's kinds, as long as the test goes on."""
    found = [definition for project in DEFINITIONS for _, definition in projects.of(project)]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for definition in found:
        assert (answer := api.request("POST", path, definition)).ok, answer.message
    yield
    for definition in found:
        api.request("DELETE", f"{path}/{definition['metadata']['name']}")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without commits, to which the page pushes."""
    folder = tmp_path / "machines.git"
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", str(folder)], check=True)
    return folder


def git(repository: Path) -> dict[str, str]:
    """Return the environment in which git takes the repository for that of the page, and knows who commits."""
    settings = {
        f"url.{repository}.insteadOf": REMOTE,
        "init.defaultBranch": "main",
        "user.name": "you",
        "user.email": "you@example.org",
    }
    numbered = [(f"GIT_CONFIG_KEY_{number}", name) for number, name in enumerate(settings)]
    numbered += [(f"GIT_CONFIG_VALUE_{number}", value) for number, value in enumerate(settings.values())]
    return {"GIT_CONFIG_COUNT": str(len(settings)), **dict(numbered)}


@pytest.mark.usefixtures("definitions")
def test_the_page(reader: Callable[..., Reader], program: Callable[[Recipe], Path], api: Api, repository: Path) -> None:
    one = reader(program(recipes.FLUX), OURS, on_path("git"), **git(repository))
    with serving_sources(api, {REMOTE: repository}), ended(one.folder / "kustomize-controller.pid"):
        one.follow(DOCS / "manifests/flux.md")


def test_the_page_names_the_versions() -> None:
    page = (DOCS / "manifests/flux.md").read_text()
    assert recipes.FLUX.version.removeprefix("v") in page
    required = version_of(recipes.FLUX.module, "github.com/fluxcd/source-controller/api")
    assert required == DEFINITIONS[1].version and required in page
