"""The import contracts: that ``.importlinter`` says what the rules demand for the folders there are, and that each bites.

The rules stand here once more in full, also for layers that have no folder yet, because import-linter cannot name a module
that does not exist. Whoever adds a folder is told by these tests which line the file still needs.
"""

import configparser
import os
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tools.gate.imports import imported_modules

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "paddock"

LAYERS = (
    "app",
    "web",
    "cli",
    "apiserver | controllers | drivers",
    "driverkit",
    "translate | plan | runtime",
    "client | contract | dialects | edge | store | engine",
    "meta",
    "schema",
    "base",
)

PURE = ("schema", "meta", "dialects", "translate", "plan")
EFFECTS = frozenset({"asyncio", "random", "socket", "sqlite3", "subprocess", "time"})

# What a layer may not import although the layers alone would let it.
FORBIDDEN = {
    "apiserver": "engine plan runtime translate",
    "cli": "apiserver contract controllers drivers edge engine runtime store",
    "web": "apiserver contract controllers driverkit drivers engine runtime store",
    "contract": "client dialects engine meta schema store",
    "drivers": "edge engine plan runtime store",
    "driverkit": "edge engine plan runtime store translate",
    "plan": "client edge engine store",
    "runtime": "dialects edge engine store",
    "store": "meta schema",
    "translate": "client edge engine store",
    "engine": "meta schema",
}

# What it may import all the same; docs/design/0001-layout-and-layers.md gives the reasons.
EXCEPTIONS = {
    "apiserver": (
        "apiserver.admission.bounds -> plan.quotas.measuring",
        "apiserver.admission.bounds -> plan.quotas.quota",
        "apiserver.admission.bounds -> plan.quotas.usage",
        "apiserver.admission.bounds -> plan.views.launchers",
        "apiserver.admission.gate -> plan.quotas.measuring",
        "apiserver.admission.ledger -> plan.quotas.measuring",
        "apiserver.admission.ledger -> plan.quotas.quota",
        "apiserver.admission.limits -> plan.quotas.launcher",
        "apiserver.admission.limits -> plan.quotas.measuring",
        "apiserver.admission.limits -> plan.quotas.usage",
        "apiserver.builtin.claimsizes -> plan.storage.claimsizes",
        "apiserver.builtin.clones -> plan.snapshots.clones",
        "apiserver.builtin.datavolumes -> plan.storage.contents",
        "apiserver.builtin.datavolumes -> plan.storage.datavolumeclaims",
        "apiserver.builtin.datavolumes -> plan.storage.requesters",
        "apiserver.builtin.machines -> plan.instance.defaults",
        "apiserver.builtin.machines -> plan.machine.instancetypes",
        "apiserver.builtin.machines -> plan.machine.presets",
        "apiserver.builtin.views -> plan.views.components",
        "apiserver.builtin.views -> plan.views.launchers",
        "apiserver.housekeeping.endpoints -> plan.network.mirrors",
        "apiserver.housekeeping.quotas -> plan.quotas.measuring",
        "apiserver.housekeeping.quotas -> plan.quotas.quota",
        "apiserver.housekeeping.volumes -> plan.storage.binding",
    ),
    "driverkit": (
        "driverkit.cloudinit -> engine.seeds.configdrive",
        "driverkit.cloudinit -> engine.seeds.nocloud",
        "driverkit.cloudinit -> engine.seeds.seed",
        "driverkit.diskimages -> engine.images.errors",
        "driverkit.diskimages -> engine.images.library",
        "driverkit.diskimages -> engine.images.settings",
        "driverkit.diskimages -> engine.images.sources",
        "driverkit.downloads -> engine.images.download",
        "driverkit.downloads -> engine.images.http",
        "driverkit.downloads -> engine.images.progress",
        "driverkit.downloads -> engine.images.reachpolicy",
        "driverkit.downloads -> engine.images.stopflag",
        "driverkit.foreign -> engine.images.convert",
        "driverkit.foreign -> engine.images.errors",
        "driverkit.foreign -> engine.images.formats",
        "driverkit.foreign -> engine.images.headers",
        "driverkit.foreign -> engine.images.progress",
        "driverkit.foreign -> engine.images.stopflag",
        "driverkit.foreign -> engine.images.vmdkgrains",
    ),
    "plan": (
        "plan.instance.* -> engine.machine.config",
        "plan.instance.* -> engine.machine.guest",
        "plan.instance.* -> engine.machine.observation",
        "plan.instance.* -> engine.networks.nics",
        "plan.instance.* -> engine.networks.resolver",
        "plan.instance.facts -> engine.seeds.configdrive",
        "plan.instance.facts -> engine.seeds.errors",
        "plan.network.* -> engine.networks.nics",
    ),
    "translate": ("translate.machine.* -> engine.machine.config",),
}
EXCEPTED = tuple((importer, imported) for each in EXCEPTIONS.values() for importer, _, imported in (one.partition(" -> ") for one in each))

# The modules of the engine that hold values alone.
VALUES = (
    "engine.machine.config",
    "engine.machine.guest",
    "engine.machine.observation",
    "engine.networks.nics",
    "engine.networks.resolver",
    "engine.seeds.configdrive",
)

FAMILIES = ("dialects", "translate", "controllers", "drivers")


def contracts() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / ".importlinter")
    return found


def entries(contract: str, key: str) -> frozenset[str]:
    file = contracts()
    section = f"importlinter:contract:{contract}"
    assert file.has_section(section), f".importlinter needs a contract {contract!r}"
    return frozenset(line for line in file[section][key].split("\n") if line)


def existing() -> frozenset[str]:
    return frozenset(path.parent.name for path in CODE.glob("*/__init__.py"))


def modules(names: Iterable[str]) -> frozenset[str]:
    return frozenset(f"paddock.{name}" for name in names)


def test_layers() -> None:
    def mark(line: str) -> str:
        return " | ".join(name if name in existing() else f"({name})" for name in line.split(" | "))

    lines = contracts()["importlinter:contract:layers"]["layers"].split("\n")
    assert [line for line in lines if line] == [mark(line) for line in LAYERS]
    assert contracts()["importlinter:contract:layers"].getboolean("exhaustive")


def test_cycles_are_looked_for_from_the_root() -> None:
    assert entries("acyclic", "ancestors") == {"paddock"}


def test_pure_layers() -> None:
    assert entries("pure", "source_modules") == modules(existing() & set(PURE))
    assert entries("pure", "forbidden_modules") == EFFECTS


def test_the_values_of_the_engine() -> None:
    assert entries("engine-data", "source_modules") == modules(VALUES)
    assert entries("engine-data", "forbidden_modules") == EFFECTS


@pytest.mark.parametrize("layer", EXCEPTIONS)
def test_exceptions(layer: str) -> None:
    wanted = {f"paddock.{each.replace(' -> ', ' -> paddock.')}" for each in EXCEPTIONS[layer]}
    assert entries(layer, "ignore_imports") == wanted


def test_every_exception_is_needed() -> None:
    found = {
        (path.relative_to(CODE).with_suffix("").as_posix().replace("/", "."), name.removeprefix("paddock."))
        for layer in EXCEPTIONS
        for path in (CODE / layer).rglob("*.py")
        for name in imported_modules(path.read_text(encoding="utf-8"))
    }

    def is_needed(importer: str, target: str) -> bool:
        return any(fnmatchcase(module, importer) and f"{name}.".startswith(f"{target}.") for module, name in found)

    assert [pair for pair in EXCEPTED if not is_needed(*pair)] == []


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_forbidden(layer: str) -> None:
    forbidden = modules(existing() & set(FORBIDDEN[layer].split()))
    if layer in existing() and forbidden:
        assert entries(layer, "source_modules") == modules([layer])
        assert entries(layer, "forbidden_modules") == forbidden
    else:
        assert not contracts().has_section(f"importlinter:contract:{layer}")


@pytest.mark.parametrize("family", sorted(existing() & set(FAMILIES)))
def test_members_are_independent(family: str) -> None:
    assert entries(f"independent-{family}", "modules") == {f"paddock.{family}.*"}


class Skeleton:
    """A package with the real one's layers and made-up members, empty but for planted imports."""

    MEMBERS = ("dialects.alpha", "dialects.kubevirt", "dialects.kubermatic", "translate.alpha", "translate.beta", "translate.machine")
    ROOMS = sorted({name.rpartition(".")[0] for pair in EXCEPTED for name in pair} - set(MEMBERS))

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("", *existing(), *self.MEMBERS, *self.ROOMS):
            package = folder / "paddock" / name.replace(".", "/")
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
            (package / "it.py").touch()
        for name in (*VALUES, *(imported for _, imported in EXCEPTED)):
            self.plant(name, "")
        # The container itself has no module beside the layers.
        (folder / "paddock" / "it.py").unlink()
        for layer in ("dialects", "translate"):
            (folder / "paddock" / layer / "it.py").unlink()

    def plant(self, importer: str, line: str) -> None:
        with (self.folder / "paddock" / f"{importer.replace('.', '/')}.py").open("a") as module:
            module.write(line + "\n")

    def lint(self) -> tuple[int, str]:
        program = "from importlinter.cli import lint_imports_command as run; run()"
        options = ("--no-cache", "--no-logo", "--config", str(ROOT / ".importlinter"))
        run = subprocess.run(
            [sys.executable, "-c", program, *options],
            env={**os.environ, "PYTHONPATH": str(self.folder), "COLUMNS": "200"},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        return run.returncode, run.stdout + run.stderr


@pytest.fixture
def skeleton(tmp_path: Path) -> Skeleton:
    return Skeleton(tmp_path)


ALLOWED = (
    ("dialects.kubermatic.it", "dialects.kubevirt.it"),
    ("dialects.alpha.it", "schema.it"),
    ("translate.alpha.it", "dialects.alpha.it"),
    ("translate.alpha.it", "dialects.kubevirt.it"),
    ("plan.it", "dialects.alpha.it"),
    ("cli.it", "translate.alpha.it"),
    ("cli.it", "plan.it"),
    ("runtime.it", "client.it"),
    ("drivers.it", "contract.it"),
    ("drivers.it", "translate.alpha.it"),
    ("controllers.it", "contract.it"),
    ("client.it", "schema.it"),
    *((importer.replace("*", "it"), imported) for importer, imported in EXCEPTED),
)

PLANTED = (
    ("base.it", "schema.it"),
    ("base.it", "cli.it"),
    ("schema.it", "meta.it"),
    ("meta.it", "dialects.alpha.it"),
    ("dialects.alpha.it", "translate.alpha.it"),
    ("dialects.alpha.it", "dialects.kubevirt.it"),
    ("dialects.kubevirt.it", "dialects.kubermatic.it"),
    ("dialects.kubermatic.it", "dialects.alpha.it"),
    ("translate.alpha.it", "translate.beta.it"),
    ("translate.alpha.it", "plan.it"),
    ("plan.it", "translate.alpha.it"),
    ("translate.beta.it", "cli.it"),
    ("cli.it", "store.it"),
    ("cli.it", "runtime.it"),
    ("client.it", "store.it"),
    ("client.it", "runtime.it"),
    ("contract.it", "client.it"),
    ("contract.it", "runtime.it"),
    ("cli.it", "contract.it"),
    ("drivers.it", "plan.it"),
    ("drivers.it", "runtime.it"),
    ("drivers.it", "controllers.it"),
    ("runtime.it", "apiserver.it"),
    ("runtime.it", "store.it"),
    ("runtime.it", "dialects.alpha.it"),
    ("store.it", "meta.it"),
    ("store.it", "schema.it"),
    ("plan.it", "engine.networks.nics"),
    ("plan.it", "store.it"),
    ("plan.network.it", "engine.machine.config"),
    ("plan.instance.it", "engine.machine.it"),
    ("plan.instance.it", "engine.seeds.configdrive"),
    ("translate.alpha.it", "engine.machine.config"),
    ("translate.machine.it", "engine.machine.guest"),
    ("apiserver.it", "plan.it"),
    ("apiserver.it", "runtime.it"),
    ("apiserver.builtin.it", "plan.instance.defaults"),
    ("apiserver.builtin.machines", "plan.storage.contents"),
)


def plant(skeleton: Skeleton, importer: str, imported: str) -> None:
    package, _, name = imported.rpartition(".")
    skeleton.plant(importer, f"from paddock.{package} import {name}")


def test_what_the_rules_allow_passes(skeleton: Skeleton) -> None:
    for importer, imported in ALLOWED:
        plant(skeleton, importer, imported)
    code, output = skeleton.lint()
    assert code == 0, output


def test_every_planted_import_is_reported(skeleton: Skeleton) -> None:
    for importer, imported in PLANTED:
        plant(skeleton, importer, imported)
    code, output = skeleton.lint()
    assert code == 1
    assert [pair for pair in PLANTED if f"paddock.{pair[0]} -> paddock.{pair[1]} (" not in output] == []


def test_every_effect_in_every_pure_layer_is_reported(skeleton: Skeleton) -> None:
    where = [{"dialects": "dialects.alpha", "translate": "translate.beta"}.get(layer, layer) for layer in PURE]
    planted = [(f"{layer}.it", effect) for layer in where for effect in sorted(EFFECTS)]
    for importer, effect in planted:
        skeleton.plant(importer, f"import {effect}")
    _, output = skeleton.lint()
    assert [pair for pair in planted if f"paddock.{pair[0]} -> {pair[1]} (" not in output] == []


def test_an_effect_below_a_value_of_the_engine_is_reported(skeleton: Skeleton) -> None:
    plant(skeleton, "engine.networks.nics", "engine.networks.it")
    skeleton.plant("engine.networks.it", "import socket")
    code, output = skeleton.lint()
    assert code == 1
    assert "paddock.engine.networks.it -> socket (" in output


def test_a_cycle_among_siblings_is_reported(skeleton: Skeleton) -> None:
    (skeleton.folder / "paddock" / "meta" / "other.py").write_text("from paddock.kubernetes.meta import it\n")
    skeleton.plant("meta.it", "from paddock.kubernetes.meta import other")
    assert "No cycles are allowed in paddock.kubernetes.meta" in skeleton.lint()[1]


def test_a_folder_without_a_layer_is_reported(skeleton: Skeleton) -> None:
    (skeleton.folder / "paddock" / "extra").mkdir()
    (skeleton.folder / "paddock" / "extra" / "__init__.py").touch()
    code, output = skeleton.lint()
    assert code == 1
    assert "extra" in output
