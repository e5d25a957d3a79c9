"""A dialect is one value (docs/design/0029-dialects-as-values.md): without its folder the rest works, and another one is a folder and a
line."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paddock.kubernetes import catalog
from tests.arch.trees import PACKAGE, trees_of

# What else goes with VirtRigaud: the hypervisors of its Providers, and the programs that serve them.
_MORE = {"virtrigaud": ("app/programs", "app/provider", "app/controllers/virtrigaud.py", "app/commands/provider*.py")}
_LEAVING = [name for name in catalog.DIALECTS if name != catalog.HUB]
_GENERATE = """
import importlib, pkgutil
import msgspec, paddock, paddock_drivers
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import KindFacts
catalog._FACTS.write_bytes(msgspec.json.encode(msgspec.convert(catalog.every(), tuple[KindFacts, ...], from_attributes=True)))
"""
_LOAD = """
for package in (paddock, paddock_drivers):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
print(*catalog.DIALECTS)
"""
_COMMAND = "from paddock.app.main import main; import sys; sys.exit(main())"


def places(package: Path, dialect: str) -> Iterator[Path]:
    """Yield the folder of a dialect, and what else goes with it."""
    for pattern in (f"dialects/{dialect}", *_MORE.get(dialect, ())):
        yield from package.glob(pattern)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, to be changed."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "src" / "paddock"))


def edit_list(package: Path, old: str, new: str) -> None:
    path = package / "kubernetes" / "catalog.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def python(package: Path, program: str, *words: str) -> str:
    """Run a program with the changed package, and return what it prints."""
    start = f"import sys; sys.path.insert(0, {str(package.parent)!r})\n{program}"
    ran = subprocess.run([sys.executable, "-B", "-c", start, *words], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def examples(package: Path, dialect: str) -> list[str]:
    folder = package / ("kubevirt" if dialect == catalog.HUB else f"dialects/{dialect}") / "examples"
    return [word for path in sorted(folder.glob("*.yaml")) for word in ("-f", str(path))]


@pytest.mark.parametrize("dialect", _LEAVING)
def test_without_a_dialect_everything_else_works(copy: Path, dialect: str) -> None:
    for place in places(copy, dialect):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    edit_list(copy, f'    "{dialect}": "paddock.dialects.{dialect}",\n', "")
    stayed = [each for each in catalog.DIALECTS if each != dialect]
    assert python(copy, _GENERATE + _LOAD).split() == stayed
    for each in stayed:
        # Kubermatic's translator fills in KubeVirt's own machines.
        if each == catalog.HUB and catalog.dialect(dialect).extends_kubevirt:
            continue
        assert python(copy, _COMMAND, "render", *examples(copy, each)) == rendered(each)


@cache
def rendered(dialect: str) -> str:
    """Return what the examples of a dialect become with all dialects there."""
    return python(PACKAGE, _COMMAND, "render", *examples(PACKAGE, dialect))


_SIXTH = {
    "__init__.py": '''"""A dialect for a test.

More of it.
"""
from paddock.kubernetes.schema.dialect import Dialect, DialectMachine

MACHINE = DialectMachine(group="sixth.example", version="v1", kind="Box", plural="boxes", words=("sixth",), finalizer="sixth.example/box")
DIALECT = Dialect(
    name="sixth",
    group="sixth.example",
    kinds={MACHINE.id: "box"},
    machines=(MACHINE,),
    translator="paddock.dialects.sixth.translate",
    translated=(MACHINE.id,),
    effects="paddock.dialects.sixth.plan",
    wiring="paddock.dialects.sixth.wiring",
    stored="sixth.example",
)
''',
    "kinds/__init__.py": "",
    "kinds/box.py": """from typing import Annotated
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity
from paddock.kubernetes.schema.kind import AGE, Kind, Version

class BoxSpec(Object):
    memory: Annotated[Quantity, Field("The memory.", required=True)] = 0

class Box(Resource):
    spec: Annotated[BoxSpec, Field("The machine.", required=True)] = BoxSpec()

KINDS = (
    Kind(
        group="sixth.example", kind="Box", plural="boxes", singular="box", cls=Box, dialect="sixth",
        versions=(Version("v1"),), columns=(AGE,),
    ),
)
""",
    "translate.py": """from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.dialects.sixth.kinds.box import Box
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import from_data

def to_kubevirt(box, world, rendering):
    spec = {"domain": {"devices": {}, "memory": {"guest": box.spec.memory}}}
    meta = {"name": box.metadata.name}
    spec = {"running": True, "template": {"spec": spec}}
    made = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": spec}
    return Translated((from_data(made, VirtualMachine),))

def from_kubevirt(machine, world, rendering):
    memory = machine.spec.template.spec.domain.memory.guest
    made = {"apiVersion": "sixth.example/v1", "kind": "Box", "metadata": {"name": machine.metadata.name}, "spec": {"memory": memory}}
    return Translated((from_data(made, Box),))
""",
    "plan.py": """from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import RESTART

EFFECTS = {("sixth.example", "Box"): (EffectRow("spec.memory", RESTART, "boxes are small"),)}
""",
    "wiring.py": "def wire(program, fronts, front): print('wired', fronts.workers)\n",
    "examples/box.yaml": "apiVersion: sixth.example/v1\nkind: Box\nmetadata:\n  name: web\nspec:\n  memory: 1Gi\n",
}
_ROLES = """
from paddock.server.housekeeping import bootstrap
from paddock.server.builtin.fronts import strategies
from paddock.dialects import fronts
from paddock.fleet import kinds
from paddock.kubernetes.schema.kind import AdmissionSettings
print("sixth.example" in str(bootstrap.ROLES["system:aggregate-to-edit"]))
print(strategies(AdmissionSettings()).keys() >= {("sixth.example", "Box")})
print(kinds.called("sixth")[0].qualified)
fronts.WIRES["sixth"](None, fronts.FrontSettings(), None)
"""


def test_a_sixth_dialect_is_a_folder_and_a_line(copy: Path, tmp_path: Path) -> None:
    for name, text in _SIXTH.items():
        path = copy / "dialects" / "sixth" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    edit_list(copy, '    "kubevirt": ', '    "sixth": "paddock.dialects.sixth",\n    "kubevirt": ')
    python(copy, _GENERATE)
    box, bigger = examples(copy, "sixth")[1], tmp_path / "bigger.yaml"
    bigger.write_text(Path(box).read_text(encoding="utf-8").replace("1Gi", "2Gi"), encoding="utf-8")
    assert "guest: 1Gi" in python(copy, _COMMAND, "render", "-f", box)
    assert "kind: Box" in python(copy, _COMMAND, "convert", "--to", "sixth", "-f", str(copy / "kubevirt" / "examples" / "minimal.yaml"))
    assert "boxes are small" in python(copy, _COMMAND, "plan", "-f", str(bigger), "--against", box)
    assert "The memory." in python(copy, _COMMAND, "explain", "box.spec.memory")
    assert "boxes.sixth.example" in python(copy, _COMMAND, "crds", "--dialect", "sixth")
    assert python(copy, _ROLES).split() == ["True", "True", "boxes.sixth.example", "wired", "5"]


# Who names a part of a dialect and not its value: commands that do something for this dialect alone, and load it when it is met.
_KNOWN = {
    "virtrigaud": {"app/options/machines.py"},
}


@pytest.mark.parametrize("dialect", _LEAVING)
def test_only_its_own_modules_import_a_dialect(dialect: str) -> None:
    own = set(places(PACKAGE, dialect))
    found = set()
    for path, tree in trees_of("."):
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        modules = (f"{node.module}.{each.name}." for node in imports for each in node.names)
        if not own & {path, *path.parents} and any(each.startswith(f"paddock.dialects.{dialect}.") for each in modules):
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == _KNOWN.get(dialect, set())
