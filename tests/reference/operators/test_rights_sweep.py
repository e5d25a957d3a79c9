"""Every right of the chart is taken away in turn: /readyz and the log name it and what needs it, and nothing else, until it is granted."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from paddock.kubernetes.client.errors import RefusedRight
from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.client import Json
from tests.reference.embedded import serving
from tests.reference.operators.conftest import Cluster, made
from tests.reference.operators.helm import NAMESPACE, PADDOCK, Helm
from tests.reference.operators.rights import SEED, Right, granted, without
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
# The values of the chart for a dialect, with everything that needs rights, and the arguments of its operator.
VALUES = {
    "stakater": (("dialects={stakater}", "manageCloneRbac=true"), ("--manage-clone-rbac", "--metrics-secure")),
    "vitistack": (("dialects={vitistack}",), ("--metrics-secure",)),
    "kubermatic": (("dialects={kubermatic}", "front.secretName=front"), ("--metrics-secure",)),
    "virtrigaud": (("dialects={virtrigaud}", "metrics.secure=false"), ()),
}
# What needs the rights that no dialect does, by a resource of them.
OPTIONS = {
    "roles": "--manage-clone-rbac",
    "rolebindings": "--manage-clone-rbac",
    "datavolumes/source": "--manage-clone-rbac",
    "tokenreviews": "--metrics-secure",
    "subjectaccessreviews": "--metrics-secure",
    "leases": "--leader-elect",
}
SAMPLE = 3


@dataclass(frozen=True)
class Sides:
    """A cluster with every definition, an API for front objects, and the chart."""

    cluster: Cluster
    front: Path
    helm: Helm

    @contextmanager
    def operator(self, dialect: str, log: Path) -> Iterator[tuple[Operator, Cluster]]:
        """An operator of one dialect with the rights of the chart for it, ready."""
        values, arguments = VALUES[dialect]
        chart = self.helm.template(PADDOCK, *(part for each in values for part in ("--set", each)))
        cluster = replace(self.cluster, rights=[each for each in chart if "rbac" in each["apiVersion"]])
        grant(cluster, cluster.rights)
        if dialect == "kubermatic":
            arguments = (*arguments, "--front", str(self.front))
        common = ("--dialect", dialect, "--namespace", NAMESPACE, "--reconcile-interval", "1s")
        with operating(cluster.operator, log, *common, *arguments) as operator:
            operator.wait_ready()
            yield operator, cluster


@pytest.fixture(scope="module")
def sides(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    directory = tmp_path_factory.mktemp("sweep")
    (directory / "cluster").mkdir()
    with ExitStack() as ends:
        cluster = ends.enter_context(made(binaries, helms[0], directory / "cluster", crds.load()))
        front = ends.enter_context(serving(directory / "front"))
        yield Sides(cluster, front.kubeconfig, helms[0])


def grant(cluster: Cluster, rights: Sequence[Json]) -> None:
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))


def rights_of(cluster: Cluster) -> list[Right]:
    """Return the rights of a chart in the order of the seed."""
    found = list(dict.fromkeys(granted(cluster.rights)))
    return random.Random(SEED).sample(found, len(found))


def named(right: Right, dialect: str) -> str:
    """Return the line of /readyz about a right."""
    resource, _, subresource = right.resource.partition("/")
    user = OPTIONS.get(right.resource, dialect)
    lacking = RefusedRight("the operator", right.verb, right.group, resource, subresource, NAMESPACE if resource == "leases" else "")
    return f"[-]rights {lacking.text}, which {user} needs: {lacking.fix}"


def line(operator: Operator) -> str:
    """Return what /readyz says of rights."""
    return next(each for each in operator.page("/readyz")[1].splitlines() if each[3:].startswith("rights "))


def sweep(sides: Sides, dialect: str, log: Path, most: int | None = None) -> None:
    with sides.operator(dialect, log) as (operator, cluster):
        for right in rights_of(cluster)[:most]:
            expected, before = named(right, dialect), len(operator.said())
            grant(cluster, without(cluster.rights, right))
            operator.wait(lambda expected=expected: line(operator) == expected)  # type: ignore[misc]
            assert operator.page("/readyz")[0] == 500
            told = [each for each in operator.said()[before:] if each["message"] == "right missing" and "needed_by" in each]
            assert [f"[-]rights {each['problem']}, which {each['needed_by']} needs: {each['fix']}" for each in told][:1] == [expected]
            grant(cluster, cluster.rights)
            operator.wait(lambda: line(operator) == "[+]rights ok")
        operator.wait_ready()


@pytest.mark.parametrize("dialect", VALUES)
def test_rights_that_are_missing_are_named(sides: Sides, dialect: str, tmp_path: Path) -> None:
    """Some rights, by the seed; RIGHTS_SEED=n takes others, and `make soak` takes all."""
    sweep(sides, dialect, tmp_path / "log", SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("dialect", VALUES)
def test_every_right_that_is_missing_is_named(sides: Sides, dialect: str, tmp_path: Path) -> None:
    sweep(sides, dialect, tmp_path / "log")


def test_an_operator_without_any_right_names_the_first_ones(sides: Sides, tmp_path: Path) -> None:
    with sides.operator("vitistack", tmp_path / "log") as (operator, cluster):
        for each in cluster.rights:
            if each["kind"].endswith("Binding"):
                where = each["metadata"].get("namespace", "default")
                cluster.kubectl.ok("delete", each["kind"], each["metadata"]["name"], "-n", where)
        operator.wait(lambda: line(operator).startswith("[-]rights cannot create ") and " more" in line(operator))
        grant(cluster, cluster.rights)
        operator.wait(lambda: line(operator) == "[+]rights ok")
