"""CDI's CustomResourceDefinitions. No module of the Go proxy holds them, so the generator that CDI uses makes them from CDI's types."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.reference.build import built, run, stored
from tests.reference.crds import Crd
from tests.reference.recipes import CDI_GENERATOR

MODULE = CDI_GENERATOR.release


@cache
def definitions() -> tuple[Crd, ...]:
    """Each definition; made once per version of CDI."""
    done = stored("cdi-definitions", CDI_GENERATOR.key, _generate, print)
    read: list[dict[str, Any]] = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in sorted(done.glob("*.yaml"))]
    return tuple(Crd(f"{MODULE} {each['spec']['names']['singular']}", each) for each in read)


def _generate(folder: Path) -> None:
    (program,) = CDI_GENERATOR.programs
    command = ["nice", str(built(CDI_GENERATOR) / program.name), "crd", f"paths={MODULE}/pkg/apis/core/v1beta1"]
    run(program, [*command, f"output:crd:dir={folder}"], CDI_GENERATOR.module, CDI_GENERATOR.environment)
