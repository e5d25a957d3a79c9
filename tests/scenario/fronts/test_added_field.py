"""A field that is added to a dialect's declaration, and to nothing else, is named wherever it would be dropped."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.cli.exits import GOOD, LOSSES
from paddock.kubernetes.meta.fieldrecord import UNREAD
from tests.kit.declarations import addedfield

Data = dict[str, Any]
WHY = "; ".join(UNREAD)
_COMMAND = ("-c", "import sys; from paddock.cli.main import main; sys.exit(main())")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return addedfield.copied(tmp_path_factory.mktemp("added"))


def document(version: str, kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


VITISTACK = document(
    "vitistack.io/v1alpha1",
    "Machine",
    "web",
    {"template": "small", "resources": {"cpu": {"cores": 2, "tint": "red"}}, "networks": [{"name": "eth0", "networkName": "lan"}]},
)
NETWORK = document("vitistack.io/v1alpha1", "NetworkConfiguration", "lan", {"bridge": "br1"})
STAKATER = document("infrastructure.stakater.com/v1", "VirtualMachine", "web", {"parameters": {"cpu": {"cores": 2, "tint": "red"}}})
CLASS = document("infra.virtrigaud.io/v1beta1", "VMClass", "c", {"cpu": 2, "memory": "4Gi"})
RIGAUD = document(
    "infra.virtrigaud.io/v1beta1",
    "VirtualMachine",
    "web",
    {"providerRef": {"name": "p"}, "classRef": {"name": "c"}, "imageRef": {"name": "i"}},
)
VOLUME = document(
    "cdi.kubevirt.io/v1beta1",
    "DataVolume",
    "d",
    {
        "sourceRef": {"kind": "DataSource", "name": "s", "apiGroup": "cdi.kubevirt.io"},
        "storage": {"resources": {"requests": {"storage": "9Gi"}}},
    },
)
SOURCE = document("cdi.kubevirt.io/v1beta1", "DataSource", "s", {"source": {"http": {"url": "http://images/a"}}})


def tinted(given: Data, *path: str | int) -> Data:
    """A document with the field at a place."""
    made: Any = yaml.safe_load(yaml.safe_dump(given))
    here = made["spec"]
    for part in path:
        here = here[part]
    here["tint"] = "red"
    return dict(made)


ROWS = {
    "a member": ([VITISTACK, NETWORK], "Machine/web: spec.resources.cpu.tint"),
    "a disk over the template's": (
        [document("vitistack.io/v1alpha1", "Machine", "web", {"template": "small", "disks": [{"name": "root", "tint": "red"}]})],
        "Machine/web: spec.disks[0].tint",
    ),
    "an object that is looked up": ([RIGAUD, tinted(CLASS)], "VMClass/c: spec.tint"),
    "a network that is looked up": (
        [
            document("vitistack.io/v1alpha1", "Machine", "web", {"template": "small", "networks": VITISTACK["spec"]["networks"]}),
            tinted(NETWORK),
        ],
        "NetworkConfiguration/lan: spec.tint",
    ),
    "stakater": ([STAKATER], "VirtualMachine/web: spec.parameters.cpu.tint"),
    "stakater's spec": (
        [document("infrastructure.stakater.com/v1", "VirtualMachine", "web", {"tint": "red"})],
        "VirtualMachine/web: spec.tint",
    ),
    "below a reference that is taken": ([tinted(RIGAUD, "classRef"), CLASS], "VirtualMachine/web: spec.classRef.tint"),
    "a source that is resolved": ([VOLUME, tinted(SOURCE)], "DataSource/s: spec.tint"),
}


def written(folder: Path, name: str, documents: list[Data]) -> str:
    (folder / name).write_text(yaml.safe_dump_all(documents))
    return str(folder / name)


@pytest.mark.parametrize("row", ROWS)
def test_render_and_convert_name_it(copy: Path, tmp_path: Path, row: str) -> None:
    documents, field = ROWS[row]
    file = written(tmp_path, "new.yaml", documents)
    for command in (("render",), ("convert", "--to", "kubevirt")):
        found = addedfield.run(copy, *_COMMAND, *command, "-f", file)
        assert found.returncode == GOOD, found.stderr
        (line,) = [each for each in found.stderr.splitlines() if "tint" in each]
        assert f"loss: {field}: " in line
        assert addedfield.run(copy, *_COMMAND, *command, "-f", file, "--strict").returncode == LOSSES


def test_what_is_passed_on_whole_carries_it(copy: Path, tmp_path: Path) -> None:
    """Kubermatic's machines are KubeVirt's: a field of theirs is in the result, and no loss."""
    hardware = {"domain": {"cpu": {"cores": 2, "tint": "red"}, "memory": {"guest": "1Gi"}, "devices": {}}}
    machine = document("kubevirt.io/v1", "VirtualMachine", "web", {"runStrategy": "Always", "template": {"spec": hardware}})
    found = addedfield.run(copy, *_COMMAND, "render", "-f", written(tmp_path, "new.yaml", [machine]), "--strict")
    assert (found.returncode, found.stderr) == (GOOD, "")
    assert "tint: red" in found.stdout


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (STAKATER, "blue", "spec.parameters.cpu.tint"),
        (VITISTACK, "blue", "spec.resources.cpu.tint"),
    ],
    ids=["stakater", "vitistack"],
)
def test_plan_names_it(copy: Path, tmp_path: Path, before: Data, after: str, field: str) -> None:
    old = yaml.safe_dump_all([before, NETWORK])
    files = [written(tmp_path, "old.yaml", [before, NETWORK]), str(tmp_path / "new.yaml")]
    for more in ("", "cores: 3"):
        (tmp_path / "new.yaml").write_text(old.replace("tint: red", f"tint: {after}").replace("cores: 2", more or "cores: 2"))
        found = addedfield.run(copy, *_COMMAND, "plan", "-f", files[1], "--against", files[0])
        (line,) = [each for each in found.stdout.splitlines() if "tint" in each]
        assert f"{field}:" in line
        assert line.endswith(f"{WHY}"), line


@pytest.mark.parametrize("front", ["stakater", "vitistack", "kubermatic"])
def test_the_controller_tells_it_in_an_event(copy: Path, front: str) -> None:
    script = Path(__file__).parent / front / "addedfield.py"
    found = addedfield.run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(script))
    assert "1 passed" in found.stdout, found.stdout + found.stderr
