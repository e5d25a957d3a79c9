"""`paddock move` between two whole hosts in virtual time: there and back, killed anywhere, undone, and refused."""

import asyncio
import io
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from paddock.cli import servers
from paddock.cli.commands import move
from paddock.cli.console import Console
from paddock.fleet.diagnosis.scene import ObjectPlace
from paddock.fleet.diagnosis.verdict import of
from paddock.fleet.machines import finding
from paddock.fleet.machines.running import MachineRunner, RunOptions, WrongState
from paddock.fleet.machines.waiting import NotReached
from paddock.fleet.moves import sides
from paddock.fleet.moves.mover import CannotMove
from paddock.fleet.moves.plan.record import FENCE, RECORD, read, write
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.moves.transfer import DiskNotCarried
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubevirt import disklinks
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.fakehost import Data, machine
from tests.scenario.commands.moving import NAMES, Killed, TwoHosts
from tests.scenario.commands.test_running import VITISTACK, VITISTACK_PATH
from tests.scenario.fronts.stakater.stage import DISK, Stage, front

TEMPLATES = [
    {
        "metadata": {"name": "web-root"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
]
VOLUMES = [
    {"name": "root", "dataVolume": {"name": "web-root"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
    {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "web-init"}}},
]
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-init"}, "data": {"userdata": "I2Nsb3VkLWNvbmZpZw=="}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "web-data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
EXPORTS = "/apis/export.kubevirt.io/v1/namespaces/default/virtualmachineexports"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
Script = Callable[[TwoHosts], Awaitable[None]]


def play(root: Path, script: Script) -> None:
    async def inside() -> None:
        async with TwoHosts(root) as hosts:
            await script(hosts)

    virtualtime.run(inside())


def web(strategy: str = "Always") -> Data:
    return machine(strategy=strategy, volumes=[dict(each) for each in VOLUMES], templates=[dict(each) for each in TEMPLATES])


async def begin(hosts: TwoHosts, strategy: str = "Always") -> None:
    await hosts.hosts["here"].make(SECRET, CLAIM, web(strategy))
    if strategy != "Halted":
        await hosts.hosts["here"].running(seconds=60)


async def names(hosts: TwoHosts, where: str, path: str = CLAIMS) -> set[str]:
    return {each["metadata"]["name"] for each in (await hosts.hosts[where].api.get(path)).data["items"]}


@played_by(play, "tmp_path")
async def test_a_machine_moves_with_its_disks(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    planned = list((await hosts.plan()).lines())
    assert planned[0] == "vm/web moves to namespace default of https://there"
    assert "  makes Secret web-init" in planned
    answer = await hosts.move()
    assert answer == "moved to namespace default of https://there; the source stays fenced until --delete-source"
    assert await hosts.guest("there", "web") and not await hosts.guest("here", "web")
    assert hosts.hosts["there"].engine.images.uploads == [hosts.content("web-root"), hosts.content("web-data")]
    assert await names(hosts, "there") == {"web-root", "web-data"}
    assert (await hosts.hosts["there"].get("Secret", "v1", "web-init"))["data"] == SECRET["data"]
    assert await hosts.move() == answer
    assert hosts.twice == []


@played_by(play, "tmp_path")
async def test_a_machine_comes_back_and_leaves_nothing(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    mac = (await hosts.hosts["here"].vmi())["status"]["interfaces"][0]["mac"]
    await hosts.move()
    assert (await hosts.hosts["there"].vmi())["status"]["interfaces"][0]["mac"] == mac
    hosts.disks["web-data"] = b"written there" * 100
    refused = await hosts.plan(source="there", target="here")
    assert any("--replace deletes it" in each for each in refused.obstacles), refused.obstacles
    hosts.options["replace"] = True
    assert "moved to namespace default of https://here" in await hosts.move(source="there", target="here")
    assert await hosts.guest("here", "web") and not await hosts.guest("there", "web")
    assert hosts.hosts["here"].engine.images.uploads[-1] == b"written there" * 100
    assert hosts.twice == []


@played_by(play, "tmp_path")
async def test_the_source_goes_only_when_the_target_has_the_machine(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    with pytest.raises(CannotMove, match="no confirmed move"):
        await hosts.delete_source()
    await hosts.move()
    await hosts.hosts["there"].change("web", {"metadata": {"annotations": {"paddock.dev/fence": "by hand"}}})
    with pytest.raises(CannotMove, match="has it fenced"):
        await hosts.delete_source()
    await hosts.hosts["there"].change("web", {"metadata": {"annotations": {"paddock.dev/fence": None}}})
    assert "deleted at https://here" in await hosts.delete_source()
    await asyncio.sleep(60)
    assert await hosts.hosts["here"].vm() == {} and await names(hosts, "here") == set()
    assert await hosts.guest("there", "web")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("undo", [False, True])
@played_by(play, "tmp_path")
async def test_a_command_that_is_killed_anywhere_goes_on(hosts: TwoHosts, /, seed: int, undo: bool) -> None:
    """The command dies at a request that the seed draws, before or after the server has it. The test runs it again, and it dies again."""
    chance, kills = random.Random(seed), 0

    async def through(hosts: TwoHosts, work: Callable[[], Awaitable[str]]) -> None:
        nonlocal kills
        while True:
            hosts.fuse.count, hosts.fuse.left, hosts.fuse.after = 0, chance.randint(40, 140), chance.random() < 0.5
            try:
                await work()
            except Killed:
                kills += 1
                await asyncio.sleep(chance.uniform(0, 20))
            else:
                hosts.fuse.left = -1
                return

    await begin(hosts)
    await through(hosts, hosts.move)
    await asyncio.sleep(60)
    assert await hosts.guest("there", "web") and not await hosts.guest("here", "web")
    assert {"web-root", "web-data"} == await names(hosts, "there")
    if undo:
        await through(hosts, hosts.undo)
        await asyncio.sleep(60)
        assert await hosts.guest("here", "web") and not await hosts.guest("there", "web")
        assert await names(hosts, "there") == set() and await hosts.hosts["there"].vm() == {}
        assert await names(hosts, "there", "/api/v1/namespaces/default/secrets") == set()
    for where in NAMES:
        assert await names(hosts, where, EXPORTS) == set()
    assert kills >= 2 and hosts.twice == []


@played_by(play, "tmp_path")
async def test_an_undo_in_the_middle_releases_the_source(hosts: TwoHosts, /) -> None:
    await begin(hosts)

    def cut() -> None:
        raise Unreachable("the target is gone", sent=True)

    hosts.channel.fail = cut
    with pytest.raises(Unreachable):
        await hosts.move()
    assert not await hosts.guest("here", "web") and await hosts.hosts["there"].vm() == {}
    hosts.lines.clear()
    assert await hosts.undo() == "is back"
    assert hosts.lines == [
        "vm/web: note that the move is undone",
        "vm/web: delete what was carried",
        "vm/web: release the source",
    ]
    await asyncio.sleep(60)
    assert await hosts.guest("here", "web")
    vm = await hosts.hosts["here"].vm()
    assert vm["spec"]["runStrategy"] == "Always" and not vm["metadata"].get("annotations", {}).keys() & {FENCE, RECORD}
    assert await hosts.undo() == "has no move to undo"


@played_by(play, "tmp_path")
async def test_a_move_does_not_go_on_after_an_undo_has_begun(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    await hosts.move()
    vm = await hosts.hosts["here"].vm()
    moved = msgspec.structs.replace(read(vm) or pytest.fail("no record"), undo=True, confirmed="")
    await hosts.hosts["here"].change("web", {"metadata": {"annotations": {RECORD: write(moved)}}})
    with pytest.raises(CannotMove, match="an undo of its move has begun"):
        await hosts.move()


@played_by(play, "tmp_path")
async def test_a_fenced_machine_starts_by_no_means(hosts: TwoHosts, /) -> None:
    host = hosts.hosts["here"]
    await begin(hosts)
    await hosts.move()
    verdict = of(ObjectPlace("kubevirt.io", "VirtualMachine", "default", "web"), await host.vm())
    assert verdict.word == "is stopped behind a fence: it moves to namespace default of https://there"
    answer = await host.verb("web", "start")
    assert answer.status == 409 and "VM is fenced" in str(answer.data)
    for strategy in ("Always", "RerunOnFailure", "Once"):
        await host.change("web", {"spec": {"runStrategy": strategy}})
        await asyncio.sleep(120)
        assert await host.vmi() == {}
    async with host.api.client() as client:
        runner = MachineRunner(client, virtualtime.Clock(), RunOptions(), lambda line: None)
        with pytest.raises(WrongState, match="it is fenced: it moves to namespace default of https://there"):
            await runner.start(await finding.find(client, "web", "default"))
    with pytest.raises(CannotMove, match="lost its fence, or wants to run"):
        await hosts.move()
    assert hosts.twice == []


@played_by(play, "tmp_path")
async def test_a_stopped_machine_stays_stopped(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    await hosts.hosts["here"].change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(60)
    await hosts.move()
    await asyncio.sleep(60)
    assert await hosts.hosts["there"].vmi() == {}
    assert (await hosts.hosts["there"].vm())["spec"]["runStrategy"] == "Halted"


@played_by(play, "tmp_path")
async def test_a_disk_that_arrives_damaged_is_carried_again(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    hosts.options["verify"] = True
    first = iter([b"something else"])
    whole = hosts.content
    hosts.content = lambda claim: next(first, None) or whole(claim)  # type: ignore[method-assign]
    with pytest.raises(DiskNotCarried, match="arrived damaged"):
        await hosts.move()
    await hosts.move()
    assert await hosts.guest("there", "web")


@played_by(play, "tmp_path")
async def test_a_disk_that_ends_too_early_does_not_arrive(hosts: TwoHosts, /) -> None:
    """KubeVirt's export server ends a compressed disk that it cannot read as if it were whole."""
    await begin(hosts)
    hosts.channel.said = 1 << 20
    with pytest.raises(DiskNotCarried, match="the source sent 8000 of its 1048576 bytes"):
        await hosts.move()
    assert hosts.hosts["there"].engine.images.uploads == [] and await hosts.hosts["there"].vm() == {}
    hosts.channel.said = None
    await hosts.move()
    assert await hosts.guest("there", "web")


# --- other dialects -------------------------------------------------------------------------------------------------------------


@played_by(play, "tmp_path")
async def test_a_machine_of_stakater_moves_in_its_dialect(hosts: TwoHosts, /) -> None:
    here, there = Stage(hosts.hosts["here"]), Stage(hosts.hosts["there"])
    await here.open()
    await here.make(front(additionalDisks=[DISK]))
    await hosts.hosts["here"].running(seconds=120)
    refused = await hosts.plan("stakater/web")
    assert any("DataSource" in each and "does not exist there" in each for each in refused.obstacles), refused.obstacles
    await there.open()
    planned = await hosts.plan("stakater/web")
    assert any("its MAC address changes" in each for each in planned.notes)
    uploads = len(hosts.hosts["there"].engine.images.uploads)
    answer = await hosts.move("stakater/web")
    assert "moved to namespace default" in answer
    assert await hosts.guest("there", "web") and not await hosts.guest("here", "web")
    assert len(hosts.hosts["there"].engine.images.uploads) == uploads + 2
    assert (await there.front())["spec"]["parameters"]["runStrategy"] == "Always"
    assert (await here.front())["spec"]["parameters"]["runStrategy"] == "Halted"
    assert await hosts.undo("stakater/web") == "is back"
    await asyncio.sleep(120)
    assert await hosts.guest("here", "web") and await there.front() == {}
    assert (await here.front())["spec"]["parameters"]["runStrategy"] == "Always"
    assert await names(hosts, "there") == set() and hosts.twice == []


@played_by(play, "tmp_path")
async def test_a_machine_of_vitistack_moves_in_its_dialect(hosts: TwoHosts, /) -> None:
    assert (await hosts.hosts["here"].api.post(VITISTACK_PATH, VITISTACK)).status == 201
    await hosts.hosts["here"].running("node", seconds=60)
    claims = await names(hosts, "here")
    assert "moved to namespace default" in await hosts.move("vitistack/node")
    assert await hosts.guest("there", "node") and not await hosts.guest("here", "node")
    assert await names(hosts, "there") == claims and len(hosts.hosts["there"].engine.images.uploads) == len(claims)
    assert await hosts.undo("vitistack/node") == "is back"
    await asyncio.sleep(120)
    assert await hosts.guest("here", "node") and not await hosts.guest("there", "node")
    assert await names(hosts, "there") == set() and hosts.twice == []


# --- the command ----------------------------------------------------------------------------------------------------------------


async def command(hosts: TwoHosts, patch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    """Run `paddock move` from here to there."""

    @asynccontextmanager
    async def connected(*_: object, **__: object) -> AsyncIterator[ServerSession]:
        yield (await hosts.side("here")).session

    @asynccontextmanager
    async def opened(text: str, namespace: str) -> AsyncIterator[MoveSide]:
        yield await hosts.side(text)

    patch.setattr(servers, "connected", connected)
    patch.setattr(sides, "opened", opened)
    patch.setattr(disklinks, "HttpLinkChannel", lambda: hosts.channel)
    out, err = io.BytesIO(), io.BytesIO()
    code = await move._run(move.parser().parse_args(["--quiet", "--to", "there", *words]), Console(out, err))
    return code, out.getvalue().decode(), err.getvalue().decode()


@played_by(play, "tmp_path")
async def test_several_machines_move_together_or_not_at_all(hosts: TwoHosts, /, monkeypatch: pytest.MonkeyPatch) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}}
    service["spec"] = {"selector": {"vm.kubevirt.io/name": "db"}, "ports": [{"port": 80}]}
    assert (await hosts.hosts["here"].api.post("/api/v1/namespaces/default/services", service)).status == 201
    for name, host in (("db", "here"), ("app", "here"), ("app", "there")):
        made = machine(name, "Halted")
        made["metadata"]["labels"] = {"tier": "shop"}
        await hosts.hosts[host].make(made)
    await asyncio.sleep(5)
    code, out, err = await command(hosts, monkeypatch, "-l", "tier=shop", "--yes")
    assert (code, out) == (2, "") and "cannot: the target has vm/app already" in err and "makes Service shop" in err
    assert "paddock.dev/fence" not in str(await hosts.hosts["here"].vm("db"))
    await hosts.hosts["there"].delete("VirtualMachine", "kubevirt.io/v1", "app")
    await asyncio.sleep(5)
    code, out, err = await command(hosts, monkeypatch, "-l", "tier=shop", "--dry-run")
    assert (code, out) == (0, "") and err.endswith("nothing was changed (--dry-run)\n")
    assert await hosts.hosts["there"].vm("db") == {}
    code, out, _ = await command(hosts, monkeypatch, "-l", "tier=shop")
    assert (code, out) == (1, "") and await hosts.hosts["there"].vm("db") == {}
    code, out, _ = await command(hosts, monkeypatch, "-l", "tier=shop", "--yes")
    assert code == 0 and out.count("moved to namespace default") == 2
    copied = (await hosts.hosts["there"].api.get("/api/v1/namespaces/default/services/shop")).data
    assert copied["spec"]["selector"] == {"vm.kubevirt.io/name": "db"}
    code, out, _ = await command(hosts, monkeypatch, "db", "--undo", "--yes")
    assert (code, out) == (0, "vm/db is back\n")
    assert await hosts.hosts["there"].vm("db") == {} and await hosts.hosts["there"].vm("app") != {}
    assert (await hosts.hosts["there"].api.get("/api/v1/namespaces/default/services/shop")).status == 404
    code, out, _ = await command(hosts, monkeypatch, "app", "--delete-source", "--yes")
    assert code == 0 and "deleted at https://here" in out


@played_by(play, "tmp_path")
async def test_a_command_stops_when_another_one_has_undone_its_move(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    first = asyncio.create_task(hosts.move())
    while "vm/web: stop the source" not in hosts.lines:
        await asyncio.sleep(0.01)
    assert await hosts.undo() == "is back"
    with pytest.raises((CannotMove, DiskNotCarried, NotReached)):
        await first
    await asyncio.sleep(120)
    assert await hosts.guest("here", "web") and hosts.twice == []
