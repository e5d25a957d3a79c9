"""CDI's CustomResourceDefinitions. No module of the Go proxy holds them, so the generator that CDI uses makes them from CDI's types."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.reference.build import Program, Recipe, built, run, stored
from tests.reference.crds import Crd

MODULE = "kubevirt.io/containerized-data-importer-api"
# In a module that knows CDI's types.
GENERATOR = Recipe(
    name="cdi-generator",
    module=Path(__file__).parent / "programs" / "cdi",
    programs=(Program("controller-gen", "sigs.k8s.io/controller-tools/cmd/controller-gen"),),
    release=MODULE,
    variables=(),
)


@cache
def definitions() -> tuple[Crd, ...]:
    """Each definition; made once per version of CDI."""
    done = stored("cdi-definitions", GENERATOR.key, _generate, print)
    read: list[dict[str, Any]] = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in sorted(done.glob("*.yaml"))]
    return tuple(Crd(f"{MODULE} {each['spec']['names']['singular']}", each) for each in read)


def _generate(folder: Path) -> None:
    (program,) = GENERATOR.programs
    command = ["nice", str(built(GENERATOR) / program.name), "crd", f"paths={MODULE}/pkg/apis/core/v1beta1"]
    run(program, [*command, f"output:crd:dir={folder}"], GENERATOR.module, GENERATOR.environment)
