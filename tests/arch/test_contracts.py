"""The import contracts of ``.importlinter``: each bites, and each exception is needed.

Packages of empty modules with the real ones' rooms and floors stand for the real ones. Imports that the rules forbid are planted in them,
and import-linter, with the real file, reports every one.
"""

import configparser
import os
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tools.gate.imports import imported_modules

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "paddock"
WING = ROOT / "src" / "paddock_drivers"

EFFECTS = ("asyncio", "random", "socket", "sqlite3", "subprocess", "time")
KUBERNETES = ("admission", "catalog", "client", "core", "meta", "quotas", "releases", "runtime", "schema", "storage", "targets")
DRIVERS = ("fake", "firecracker", "kit", "kubevirt", "libvirt", "proxmox", "vsphere")
FLOORS = ("kinds", "rules", "translate", "plan", "controllers")
# The pure floors: no effects, no clock, no chance.
PURE = (
    *(f"kubernetes.{each}" for each in KUBERNETES if each not in ("client", "runtime", "targets")),
    *(f"{room}.{floor}" for room in ("kubevirt", "dialects.alpha") for floor in FLOORS[:-1]),
    "fleet.moves.plan",
)
# The floor of base and the modules of the engine that hold values alone.
VALUES = (
    "base.seeds",
    "engine.machine.config",
    "engine.machine.guest",
    "engine.machine.observation",
    "engine.networks.nics",
    "engine.networks.resolver",
)


def full(name: str) -> str:
    """Return the whole name of a module, which is written below `paddock` here."""
    return name if name.startswith(WING.name) else f"paddock.{name}"


def sections() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / ".importlinter")
    return found


def exceptions() -> Iterator[tuple[str, str]]:
    """Yield who may import what all the same, below the package; docs/design/0001-layout-and-layers.md gives the reasons."""
    file = sections()
    for name in file.sections():
        for line in file[name].get("ignore_imports", "").split("\n"):
            if line:
                importer, _, imported = line.partition(" -> ")
                yield importer.removeprefix("paddock."), imported.removeprefix("paddock.")


EXCEPTED = tuple(exceptions())


def existing() -> frozenset[str]:
    return frozenset(path.parent.name for path in CODE.glob("*/__init__.py"))


def members(room: str | Path) -> frozenset[str]:
    return frozenset(path.stem for path in (CODE / room).iterdir() if path.is_dir() or path.suffix == ".py") - {"__init__", "__pycache__"}


def test_every_room_has_its_layer() -> None:
    lines = sections()["importlinter:contract:rooms"]["layers"].split("\n")
    assert {room for line in lines if line for room in line.split(" | ")} == existing()


def test_what_is_named_by_one_list_is_there() -> None:
    """Floors and drivers that the skeleton has are those of the package."""
    assert members("kubernetes") == {*KUBERNETES, "facts"}
    assert members(WING) == {*DRIVERS, "catalog"}


def test_every_exception_is_needed() -> None:
    found = {
        (path.relative_to(CODE).with_suffix("").as_posix().replace("/", "."), name.removeprefix("paddock."))
        for path in CODE.rglob("*.py")
        for name in imported_modules(path.read_text(encoding="utf-8"))
    }

    def is_needed(importer: str, target: str) -> bool:
        return any(fnmatchcase(module, importer) and fnmatchcase(f"{name}.", f"{target.removesuffix('.**')}.*") for module, name in found)

    assert [pair for pair in EXCEPTED if not is_needed(*pair)] == []


class Skeleton:
    """A package with the real one's rooms and floors, and made-up dialects, empty but for planted imports."""

    PACKAGES = (
        *(f"{room}.{floor}" for room in ("kubevirt", "dialects.alpha", "dialects.beta") for floor in FLOORS),
        *(
            "dialects.alpha",
            "dialects.beta",
            "kubevirt.admission",
            "kubevirt.controllers.one",
            "kubevirt.controllers.two",
            "kubevirt.plan.instance",
            "kubevirt.plan.network",
        ),
        *(f"kubernetes.{each}" for each in KUBERNETES),
        *(f"paddock_drivers.{each}" for each in DRIVERS),
        *("base.images", "base.seeds", "server.edge", "server.store", "fleet.moves", "fleet.moves.plan"),
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        above = {name.rpartition(".")[0] for name in (*VALUES, *(imported for _, imported in EXCEPTED if "*" not in imported))}
        for name in ("", WING.name, *existing(), *self.PACKAGES, *above):
            package = folder / (full(name) if name else "paddock").replace(".", "/")
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
            (package / "it.py").touch()
        for name in (*VALUES, "dialects.fronts", "dialects.alpha.wiring", *(one for pair in EXCEPTED for one in pair if "*" not in one)):
            if not (folder / full(name).replace(".", "/")).is_dir():
                self.plant(name, "")
        # The containers themselves have no module beside the layers.
        for room in ("", "kubernetes", "dialects"):
            (folder / "paddock" / room / "it.py").unlink()

    def plant(self, importer: str, line: str) -> None:
        with (self.folder / f"{full(importer).replace('.', '/')}.py").open("a") as module:
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


def _example(pattern: str) -> str:
    return pattern.replace("dialects.*", "dialects.alpha").replace("**", "it").replace("*", "it")


ALLOWED = (
    ("dialects.alpha.kinds.it", "kubevirt.kinds.it"),
    ("dialects.alpha.kinds.it", "dialects.alpha.rules.it"),
    ("dialects.alpha.translate.it", "dialects.alpha.kinds.it"),
    ("dialects.alpha.controllers.it", "contract.it"),
    ("dialects.alpha.controllers.it", "kubevirt.plan.it"),
    ("kubevirt.controllers.one.it", "engine.it"),
    ("kubevirt.controllers.one.it", "base.images.it"),
    ("kubevirt.plan.instance.it", "base.seeds.it"),
    ("engine.it", "base.images.it"),
    ("kubevirt.admission.it", "server.it"),
    ("kubernetes.runtime.it", "kubernetes.client.it"),
    ("kubernetes.client.it", "kubernetes.meta.it"),
    ("fleet.it", "dialects.alpha.translate.it"),
    ("cli.it", "kubevirt.plan.it"),
    ("web.it", "cli.it"),
    ("paddock_drivers.libvirt.it", "contract.it"),
    ("paddock_drivers.libvirt.it", "kubevirt.kinds.it"),
    ("contract.it", "kubernetes.meta.it"),
    ("paddock_drivers.libvirt.it", "paddock_drivers.kit.it"),
    ("paddock_drivers.libvirt.it", "kubernetes.client.it"),
    ("app.it", "paddock_drivers.kit.it"),
    ("paddock_drivers.kit.it", "base.images.it"),
    ("paddock_drivers.kit.it", "base.seeds.it"),
    *((_example(importer), _example(imported)) for importer, imported in EXCEPTED),
)

PLANTED = (
    # rooms
    ("base.it", "kubernetes.schema.it"),
    ("base.it", "cli.it"),
    ("kubernetes.meta.it", "dialects.alpha.kinds.it"),
    ("kubernetes.runtime.it", "engine.it"),
    ("kubernetes.runtime.it", "server.it"),
    ("engine.it", "kubernetes.meta.it"),
    ("contract.it", "kubernetes.client.it"),
    ("contract.it", "engine.it"),
    ("server.it", "kubevirt.plan.it"),
    ("server.it", "engine.it"),
    ("server.it", "kubernetes.runtime.it"),
    ("kubevirt.kinds.it", "dialects.alpha.kinds.it"),
    ("dialects.alpha.translate.it", "fleet.it"),
    ("fleet.it", "cli.it"),
    ("fleet.it", "paddock_drivers.kit.it"),
    ("contract.it", "paddock_drivers.kit.it"),
    ("paddock_drivers.libvirt.it", "fleet.it"),
    ("paddock_drivers.libvirt.it", "app.it"),
    ("paddock_drivers.kit.it", "server.it"),
    ("cli.it", "web.it"),
    # floors
    ("kubernetes.schema.it", "kubernetes.meta.it"),
    ("kubernetes.core.it", "kubernetes.catalog.it"),
    ("kubernetes.client.it", "kubernetes.runtime.it"),
    ("dialects.alpha.kinds.it", "dialects.alpha.translate.it"),
    ("dialects.alpha.rules.it", "dialects.alpha.plan.it"),
    ("dialects.alpha.translate.it", "dialects.alpha.plan.it"),
    ("dialects.alpha.plan.it", "dialects.alpha.translate.it"),
    ("dialects.alpha.plan.it", "dialects.alpha.controllers.it"),
    ("dialects.alpha.controllers.it", "dialects.alpha.wiring"),
    ("kubevirt.kinds.it", "kubevirt.plan.it"),
    ("kubevirt.plan.it", "kubevirt.translate.it"),
    ("kubevirt.controllers.one.it", "kubevirt.admission.it"),
    # members
    ("dialects.alpha.kinds.it", "dialects.beta.kinds.it"),
    ("dialects.alpha.translate.it", "dialects.beta.translate.it"),
    ("kubevirt.controllers.one.it", "kubevirt.controllers.two.it"),
    ("paddock_drivers.libvirt.it", "paddock_drivers.proxmox.it"),
    # what may be seen of the rooms below
    ("dialects.alpha.kinds.it", "kubernetes.client.it"),
    ("kubevirt.kinds.it", "engine.machine.config"),
    ("kubevirt.plan.it", "engine.networks.nics"),
    ("kubevirt.plan.network.it", "engine.machine.config"),
    ("kubevirt.plan.instance.it", "engine.machine.it"),
    ("kubevirt.plan.instance.it", "base.images.it"),
    ("kubevirt.plan.network.it", "base.seeds.it"),
    ("kubevirt.translate.it", "base.images.it"),
    ("server.it", "base.images.it"),
    ("web.it", "base.seeds.it"),
    ("kubevirt.plan.it", "server.store.it"),
    ("fleet.moves.plan.it", "kubernetes.client.it"),
    ("kubevirt.translate.it", "engine.machine.guest"),
    ("dialects.alpha.translate.it", "engine.machine.config"),
    ("kubevirt.controllers.one.it", "server.it"),
    ("dialects.alpha.controllers.it", "server.store.it"),
    ("cli.it", "server.edge.it"),
    ("cli.it", "contract.it"),
    ("cli.it", "kubernetes.runtime.it"),
    ("fleet.it", "kubevirt.controllers.one.it"),
    ("fleet.it", "dialects.alpha.controllers.it"),
    ("web.it", "server.it"),
    ("web.it", "engine.it"),
    ("paddock_drivers.libvirt.it", "kubevirt.plan.it"),
    ("paddock_drivers.libvirt.it", "dialects.alpha.kinds.it"),
    ("paddock_drivers.libvirt.it", "dialects.alpha.controllers.it"),
    ("paddock_drivers.libvirt.it", "kubernetes.runtime.it"),
    ("paddock_drivers.libvirt.it", "engine.it"),
    ("paddock_drivers.kit.it", "kubevirt.translate.it"),
    ("server.store.it", "kubernetes.meta.it"),
    ("server.edge.it", "kubernetes.schema.it"),
)


def plant(skeleton: Skeleton, importer: str, imported: str) -> None:
    package, _, name = full(imported).rpartition(".")
    skeleton.plant(importer, f"from {package} import {name}")


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
    assert [pair for pair in PLANTED if f"{full(pair[0])} -> {full(pair[1])} (" not in output] == []


def test_every_effect_on_every_pure_floor_is_reported(skeleton: Skeleton) -> None:
    planted = [(f"{floor}.it", effect) for floor in PURE for effect in EFFECTS]
    for importer, effect in planted:
        skeleton.plant(importer, f"import {effect}")
    _, output = skeleton.lint()
    assert [pair for pair in planted if f"paddock.{pair[0]} -> {pair[1]} (" not in output] == []


def test_an_effect_below_a_value_of_the_engine_is_reported(skeleton: Skeleton) -> None:
    assert sections()["importlinter:contract:engine-data"]["source_modules"].split() == [f"paddock.{each}" for each in VALUES]
    plant(skeleton, "engine.networks.nics", "engine.networks.it")
    skeleton.plant("engine.networks.it", "import socket")
    code, output = skeleton.lint()
    assert code == 1
    assert "paddock.engine.networks.it -> socket (" in output


def test_a_cycle_among_siblings_is_reported(skeleton: Skeleton) -> None:
    (skeleton.folder / "paddock" / "fleet" / "other.py").write_text("from paddock.fleet import it\n")
    skeleton.plant("fleet.it", "from paddock.fleet import other")
    assert "No cycles are allowed in paddock.fleet" in skeleton.lint()[1]


def test_a_folder_without_a_layer_is_reported(skeleton: Skeleton) -> None:
    (skeleton.folder / "paddock" / "extra").mkdir()
    (skeleton.folder / "paddock" / "extra" / "__init__.py").touch()
    code, output = skeleton.lint()
    assert code == 1
    assert "extra" in output
