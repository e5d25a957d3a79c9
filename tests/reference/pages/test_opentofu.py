"""OpenTofu with a provider for Kubernetes manifests, as docs/manifests/opentofu.md uses them."""

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.pages import Reader
from tests.reference import recipes
from tests.reference.build import Recipe
from tests.reference.pages.conftest import DOCS, OURS

# Both builds take five minutes of processor time.
pytestmark = [pytest.mark.reference, pytest.mark.soak]


def mirror(folder: Path, provider: Path) -> Path:
    """Lay a provider into a mirror in the file system; return the settings of OpenTofu that name the mirror."""
    version = recipes.OPENTOFU_KUBECTL.version.removeprefix("v")
    target = {"x86_64": "linux_amd64", "aarch64": "linux_arm64"}[platform.machine()]
    place = folder / "registry.opentofu.org" / "gavinbunney" / "kubectl" / version / target
    place.mkdir(parents=True)
    (place / f"terraform-provider-kubectl_v{version}").symlink_to(provider)
    settings = folder / "tofu.rc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder}"\n  }}\n}}\n')
    return settings


def test_the_page(reader: Callable[..., Reader], program: Callable[[Recipe], Path], tmp_path: Path) -> None:
    settings = mirror(tmp_path / "mirror", program(recipes.OPENTOFU_KUBECTL) / "terraform-provider-kubectl")
    # CHECKPOINT_DISABLE: it asks nobody for newer versions.
    environment = {"TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1"}
    reader(program(recipes.OPENTOFU), OURS, **environment).follow(DOCS / "manifests/opentofu.md")


def test_the_page_names_the_versions() -> None:
    page = (DOCS / "manifests/opentofu.md").read_text()
    for recipe in (recipes.OPENTOFU, recipes.OPENTOFU_KUBECTL):
        assert recipe.version.removeprefix("v") in page
