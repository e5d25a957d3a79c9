"""The commands that reach into a guest, whole: their output, their errors and their exit codes, over a real server on loopback."""

import asyncio
import io
import os
import sys
from pathlib import Path

import pytest

from paddock.app.main import COMMANDS, GROUPS
from paddock.cli import main
from paddock.cli.console import Console
from paddock.engine.machine import guest
from paddock.fleet.guests import guestlogs
from paddock.server.resources.kubevirtsubresources import GROUP, INSTANCES
from tests.coroutines import scripted
from tests.kit.engine.enginefakes import PNG
from tests.unit.app.subresources.wire import listening, served
from tests.unit.app.subresources.world import World, hardware
from tests.unit.fleet.guests.local import reached, with_agent

CONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{}"}}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
users: [{{name: me, user: {{}}}}]
"""


class Ended:
    """A command that ended."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out.decode(), err.decode()


async def command(world: World, folder: Path, *words: str) -> Ended:
    """Run a command of the program on a world's server."""
    out, err = io.BytesIO(), io.BytesIO()
    async with served(world) as port:
        (folder / "kubeconfig").write_text(CONFIG.format(port))
        given = [words[0], "--kubeconfig", str(folder / "kubeconfig"), *words[1:]]
        code = await asyncio.to_thread(main.run, given, Console(out, err), COMMANDS, GROUPS)
    return Ended(code, out.getvalue(), err.getvalue())


@scripted
async def test_exec_ends_as_its_command_does(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with World() as world:
        await with_agent(world)
        ended = await command(world, tmp_path, "exec", "vm", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (ended.code, *capfdbinary.readouterr()) == (7, b"out\n", b"err\n")
        # Without --, everything after the name is the command.
        assert (await command(world, tmp_path, "exec", "vm", "sh", "-c", "kill -9 $$")).code == 137
        words = ("exec", "-w", str(tmp_path), "-e", "A=x  y", "-e", "B=2", "vm", "--", "sh", "-c", 'echo "$A $B $PWD"')
        assert (await command(world, tmp_path, *words)).code == 0
        assert capfdbinary.readouterr().out == f"x  y 2 {tmp_path}\n".encode()
        assert (await command(world, tmp_path, "exec", "vm", "--", "/no/such")).code == 127
        assert (await command(world, tmp_path, "exec", "none", "--", "ls")).code == 125


@scripted
async def test_exec_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    async with World() as world:
        (await with_agent(world)).agent.busy = True
        ended = await command(world, tmp_path, "exec", "--timeout", "10ms", "vm", "--", "sleep", "9")
        assert (ended.code, ended.err) == (124, "paddock: sleep did not end within 0.01 s, and continues in the guest\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("exec", "vm"), "name a command"),
        (("exec", "-it", "vm", "--", "sh"), "gives no terminal"),
        (("exec", "-e", "=x", "vm", "--", "sh"), "is not NAME=VALUE"),
        (("cp", "a", "b"), "name a guest on one side"),
        (("cp", "a:/x", "b:/x"), "name a guest on one side"),
        (("ssh",), "name a machine"),
        (("ssh", "-p", "0", "vm"), "is no port"),
        (("forward", "vm"), "name ports to forward"),
        (("forward", "vm", "80", "--stdio", "22"), "name ports to forward"),
        (("forward", "vm", "80x"), "is no port"),
        (("forward", "vm", "80/sctp"), "neither tcp nor udp"),
        (("forward", "vm", "1:2:70000"), "is no port"),
        (("expose", "vm"), "name a port"),
        (("expose", "vm", "--port", "1.2.3.4:80:80"), "no port of a Service"),
        (("logs", "-f", "--previous", "vm"), "says no more"),
        (("logs", "--cloud-init", "-f", "vm"), "goes with --tail alone"),
        (("vnc", "--port", "-1", "vm"), "is no port"),
    ],
)
@scripted
async def test_command_lines_that_are_wrong(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    async with World() as world:
        await with_agent(world)
        ended = await command(world, tmp_path, *words)
        assert (ended.code, ended.out) == (2, "") and why in ended.err


@pytest.mark.parametrize(
    "words", [("exec", "vm", "--", "ls"), ("cp", "vm:/etc/hosts", "x"), ("ssh", "vm"), ("console", "vm"), ("vnc", "--proxy", "vm")]
)
@scripted
async def test_a_machine_that_does_not_run(words: tuple[str, ...], tmp_path: Path) -> None:
    async with World() as world:
        await world.machine()
        ended = await command(world, tmp_path, *words)
        assert ended.code == (125 if words[0] == "exec" else 2)
        assert "it is not running; start it: `paddock start vm`" in ended.err


@scripted
async def test_cp_through_the_command(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_bytes(b"data")
    async with World() as world:
        await with_agent(world)
        ended = await command(world, tmp_path, "cp", str(tmp_path / "file"), f"vm/vm:{tmp_path}/there/")
        assert (ended.code, ended.err, (tmp_path / "there" / "file").read_bytes()) == (0, "", b"data")
        assert (await command(world, tmp_path, "cp", f"vm:{tmp_path}/there/file", str(tmp_path / "back"))).code == 0
        assert (tmp_path / "back").read_bytes() == b"data"


@scripted
async def test_logs_and_screenshots(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with World() as world:
        machine = await with_agent(world)
        machine.directory.serial = b"\x1b[2Jone\r\ntwo\r\n"
        assert (await command(world, tmp_path, "logs", "vm")).code == 0
        assert capfdbinary.readouterr().out == b"\x1b[2Jone\r\ntwo\r\n"
        assert (await command(world, tmp_path, "logs", "--tail", "1", "vm")).code == 0
        assert capfdbinary.readouterr().out == b"two\r\n"
        ended = await command(world, tmp_path, "logs", "--previous", "vm")
        assert ended.code == 2 and "no previous console log of vm is kept" in ended.err
        ended = await command(world, tmp_path, "screenshot", "vm", "-o", str(tmp_path / "it.png"))
        assert (ended.code, ended.out, (tmp_path / "it.png").read_bytes()) == (0, f"{tmp_path}/it.png\n", PNG)
        assert (await command(world, tmp_path, "screenshot", "vm", "-o", "-")).code == 0
        assert capfdbinary.readouterr().out == PNG


@scripted
async def test_the_output_of_a_command_may_be_cut(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with World() as world:
        machine = await with_agent(world)

        async def outcome(number: int, seconds: float) -> guest.GuestExecResult | None:
            return guest.GuestExecResult(0, b"x" * (3 << 20), b"")

        machine.agent.outcome = outcome  # type: ignore[method-assign]
        ended = await command(world, tmp_path, "exec", "vm", "--", "yes")
        assert ended.code == 0 and "cut off at 2 MiB" in ended.err and len(capfdbinary.readouterr().out) == 2 << 20


@scripted
async def test_expose(tmp_path: Path) -> None:
    async with World() as world:
        await world.machine()
        shown = await command(world, tmp_path, "expose", "vm", "--port", "80:8080", "--port", "53/udp", "--dry-run")
        assert shown.code == 0 and "vm.kubevirt.io/name: vm" in shown.out and "name: udp-53" in shown.out
        made = await command(world, tmp_path, "expose", "vm", "--port", "80", "--target-port", "8080", "--name", "web")
        service = (await world.api.get("/api/v1/namespaces/default/services/web")).data
        assert (made.code, made.out) == (0, f"{service['spec']['clusterIP']}:80\n")
        (port,) = service["spec"]["ports"]
        assert (port["port"], port["targetPort"], port["protocol"]) == (80, 8080, "TCP")
        again = await command(world, tmp_path, "expose", "vm", "--port", "80", "--name", "web")
        assert again.code == 2 and "already exists" in again.err


@scripted
async def test_an_ssh_config_for_every_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with World() as world:
        data = "#cloud-config\nusers: [default, {name: ann}]\n"
        volumes = [{"name": "ci", "cloudInitNoCloud": {"userData": data}}]
        machine = await world.machine("web", template={"spec": hardware(volumes=volumes, devices={"disks": [{"name": "ci"}]})})
        await world.machine("plain")
        ended = await command(world, tmp_path, "ssh", "--config", "-i", "/my key")
    blocks = {block.splitlines()[0]: block for block in ended.out.split("\n\n")[1:]}
    assert sorted(blocks) == ["Host plain.paddock plain.default.paddock", "Host web.paddock web.default.paddock"]
    web = blocks["Host web.paddock web.default.paddock"]
    assert f"HostKeyAlias paddock-{machine['metadata']['uid']}" in web and "\n  User ann\n" in web and 'IdentityFile "/my key"' in web
    assert f"--kubeconfig {tmp_path}/kubeconfig --stdio 22 vm/web" in web
    assert (tmp_path / "state" / "paddock").stat().st_mode & 0o077 == 0
    assert os.listdir(tmp_path / "state" / "paddock") == []


@scripted
async def test_a_kubevirt_cluster_has_no_way_to_the_agent(tmp_path: Path) -> None:
    async with World() as world:
        await with_agent(world)
        for name in ("guestexec", "guestfile"):
            del world.api.api.subresources[GROUP, INSTANCES, name, "update"]
        ended = await command(world, tmp_path, "exec", "vm", "--", "ls")
        assert ended.code == 125 and "KubeVirt has no way to the guest agent" in ended.err and "`paddock ssh vm`" in ended.err
        ended = await command(world, tmp_path, "cp", "vm:/etc/hosts", str(tmp_path))
        assert ended.code == 2 and "paddock ssh --config" in ended.err


@scripted
async def test_a_machine_on_another_hypervisor(tmp_path: Path) -> None:
    spec = {"providerRef": {"name": "esx"}, "classRef": {"name": "small"}, "imageRef": {"name": "debian"}}
    front = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VirtualMachine", "metadata": {"name": "far"}, "spec": spec}
    path = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines"
    async with World() as world:
        assert (await world.api.post(path, front)).status == 201
        status = {"status": {"id": "vm-17"}}
        assert (await world.api.call("PATCH", f"{path}/far/status", status, content_type="application/merge-patch+json")).status == 200
        ended = await command(world, tmp_path, "console", "far")
        assert (ended.code, ended.out) == (2, "")
        assert "cannot open the console of virtrigaud/far: it runs on another hypervisor" in ended.err


@scripted
async def test_the_logs_of_cloud_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(guestlogs, "_CLOUD_INIT", (str(tmp_path / "none.log"), str(tmp_path / "some.log")))
    async with World() as world:
        await with_agent(world)
        ended = await command(world, tmp_path, "logs", "--cloud-init", "vm")
        assert ended.code == 2 and "its guest has none in /var/log" in ended.err
        (tmp_path / "some.log").write_bytes(b"x" * (guestlogs._PART + 1) + b"\nend\n")
        ended = await command(world, tmp_path, "logs", "--cloud-init", "--tail", "1", "vm")
        assert (ended.code, ended.err, capfdbinary.readouterr().out) == (0, f"paddock: {tmp_path}/some.log\n", b"end\n")


@scripted
async def test_a_log_is_followed_over_cuts_and_new_runs() -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        machine.directory.serial = b"".join(b"line %d\n" % number for number in range(200))
        async with reached(world) as guest:
            follower = guestlogs.LogFollower(guest, await guestlogs.boot(guest))
            assert await follower.news() == (b"", False)
            machine.directory.serial += b"new\n"
            assert await follower.news() == (b"new\n", False)
            # The server cuts the beginning off.
            machine.directory.serial = machine.directory.serial[-300:] + b"newer\n"
            assert await follower.news() == (b"newer\n", False)
            assert await follower.news() == (b"", False)
            machine.directory.serial = b"another run\n"
            assert await follower.news() == (b"another run\n", True)


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-test\r\n")
    await reader.read(1)


@scripted
async def test_ssh_takes_the_place_of_the_program(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 5\n')
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path)}
    async with World() as world, listening(world, 22, _greet), served(world) as port:
        uid = (await world.machine())["metadata"]["uid"]
        await world.running()
        (tmp_path / "kubeconfig").write_text(CONFIG.format(port))
        words = ("ssh", "--wait", "--kubeconfig", str(tmp_path / "kubeconfig"), "-L", "1:a:2", "ann@vm", "--", "ls", "-l")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "paddock.app", *words, stdout=asyncio.subprocess.PIPE, env=environment
        )
        out, _ = await process.communicate()
    lines = out.decode().splitlines()
    assert process.returncode == 5 and f"-oHostKeyAlias=paddock-{uid}" in lines
    assert lines[-8:] == ["-l", "ann", "-L", "1:a:2", "vm.paddock", "--", "ls", "-l"]
