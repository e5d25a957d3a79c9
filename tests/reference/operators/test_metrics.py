"""Secure metrics of an operator as a process, judged by a real API server with the rights that the chart gives."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from paddock.server.security.pki import Authority
from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster, definitions, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rights import Right, without
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
ARGUMENTS = ("--dialect", "vitistack", "--namespace", NAMESPACE, "--metrics-secure")
READER = "metrics.readers[0].kind=ServiceAccount,metrics.readers[0].name=prometheus,metrics.readers[0].namespace=default"


@pytest.fixture(scope="module")
def scraped(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("scraped")
    with made(binaries, helms[0], directory, definitions(), "dialects={vitistack}", READER) as cluster:
        for each in ("prometheus", "stranger"):
            cluster.kubectl.ok("create", "serviceaccount", each)
        yield cluster


def token(cluster: Cluster, name: str) -> str:
    return cluster.kubectl.ok("create", "token", name).strip()


def until_refused(operator: Operator, credential: str) -> tuple[int, str]:
    """Scrape until a right that was taken away counts."""
    deadline = time.monotonic() + 60
    while (answer := operator.secure_metrics(credential))[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    return answer


def test_a_reader_scrapes_and_others_do_not(scraped: Cluster, tmp_path: Path) -> None:
    with operating(scraped.operator, tmp_path / "log", *ARGUMENTS) as operator:
        operator.wait_ready()
        status, text = operator.secure_metrics(token(scraped, "prometheus"))
        assert status == 200 and "paddock_leader{" in text
        status, text = operator.secure_metrics(token(scraped, "stranger"))
        assert status == 403
        assert 'system:serviceaccount:default:stranger may not get /metrics: grant the verb "get"' in text
        assert operator.secure_metrics("nobody")[0] == 401
        # The probes are plain, and their address has no metrics.
        assert (operator.page("/readyz")[0], operator.page("/metrics")[0]) == (200, 404)


def test_a_certificate_of_an_authority(scraped: Cluster, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.server(["127.0.0.1"])
    files = (f"--metrics-cert-path={certificate.parent}", f"--metrics-cert-name={certificate.name}", f"--metrics-cert-key={key.name}")
    with operating(scraped.operator, tmp_path / "log", *ARGUMENTS, *files) as operator:
        operator.wait_ready()
        assert operator.secure_metrics(token(scraped, "prometheus"), authority.certificate_file)[0] == 200


@pytest.mark.parametrize(
    "right",
    [Right("authentication.k8s.io", "tokenreviews", "create"), Right("authorization.k8s.io", "subjectaccessreviews", "create")],
    ids=lambda right: str(right.resource),
)
def test_a_right_to_reviews_that_is_missing_is_named(scraped: Cluster, tmp_path: Path, right: Right) -> None:
    try:
        with operating(scraped.operator, tmp_path / "log", *ARGUMENTS) as operator:
            operator.wait_ready()
            # One that lacked it from the beginning would not be ready.
            scraped.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(without(scraped.rights, right)))
            status, text = until_refused(operator, token(scraped, "prometheus"))
            assert (status, text) == (500, "the API server did not judge this request; the operator's log says why\n")
            (said,) = [each["error"] for each in operator.said() if each["message"] == "access to the metrics cannot be judged"]
            assert f'cannot create resource "{right.resource}" in API group "{right.group}"' in said
    finally:
        scraped.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(scraped.rights))
