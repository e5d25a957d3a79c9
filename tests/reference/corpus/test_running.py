"""The Machines that Vitistack publishes become KubeVirt's machines, and run on a host of 64 GiB whose guests are in memory."""

import asyncio
from pathlib import Path

import pytest

from tests import virtualtime
from tests.coroutines import run_by
from tests.reference import clones, recipes
from tests.reference.corpus.published import Json, sources
from tests.scenario.fronts.vitistack.conftest import GROUP, Vitistack
from tests.unit.cli.commands import paddock

pytestmark = pytest.mark.reference
(THEIRS,) = (each for each in sources() if each.name == recipes.VITISTACK.clone.repository)
FILES = tuple(each for each in THEIRS.files if each.startswith("examples/machine"))


@pytest.fixture(params=FILES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Json]]:
    """A published file, and its documents."""
    try:
        found = list(THEIRS.only(request.param).documents(tmp_path))
    except clones.NoClone as missing:
        pytest.skip(f"needs published: {missing}")
    ((_, file, documents),) = found
    return file, documents


@pytest.mark.spec("vitistack", 93)
def test_a_published_machine_becomes_a_virtual_machine(example: tuple[Path, list[Json]]) -> None:
    file, documents = example
    answer = paddock("render", "-f", str(file))
    machines = [each for each in documents if each["kind"] == "Machine"]
    assert answer.code == 0 and answer.out.count("kind: VirtualMachine\n") == len(machines), answer


@pytest.mark.spec("vitistack", 93)
@run_by(virtualtime.run)
async def test_a_published_machine_runs(example: tuple[Path, list[Json]], tmp_path: Path) -> None:
    _, documents = example
    async with Vitistack(tmp_path) as host:
        for document in documents:
            await _runs(host, document)


async def _runs(host: Vitistack, document: Json) -> None:
    """Create an object. A Machine has to run, and gives its place to the next one."""
    if document["kind"] == "MachineClass":
        assert (await host.api.post(f"/apis/{GROUP}/machineclasses", document)).status == 201
        return
    if document["kind"] == "Namespace":
        await host.api.namespace(document["metadata"]["name"])
        return
    if image := document["spec"].get("os", {}).get("imageID"):
        host.engine.images.offer(image)
    place = f"/apis/{GROUP}/namespaces/{document['metadata'].get('namespace', 'default')}/machines"
    reply = await host.api.post(place, document)
    assert reply.status == 201, reply.data
    await asyncio.sleep(120)
    path = f"{place}/{document['metadata']['name']}"
    status = (await host.api.get(path)).data["status"]
    assert (status["phase"], status["state"]) == ("Running", "Running"), status
    assert (await host.api.delete(path)).status == 200
    await asyncio.sleep(120)
    assert (await host.api.get(path)).status == 404
