"""`paddock provider`: a driver is served and judged over the wire; exit codes and output are those of the help."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from paddock.app.commands import provider, provider_conformance, provider_serve, provider_verify
from paddock.app.provider import connection, server
from paddock.app.server import eventloop
from paddock.base.errors import Terminal, UsageError
from paddock.cli.console import Console
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.server import ProviderServerSettings
from paddock_drivers import catalog
from tests.coroutines import scripted
from tests.kit.providers import providertls

FAST = "[task_seconds]\nleast = 0.001\nmost = 0.01\n"


def console() -> tuple[Console, io.BytesIO]:
    out = io.BytesIO()
    return Console(out, io.BytesIO()), out


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def served(script: Path | None, secure: Path | None = None, allowed: str = "") -> AsyncIterator[str]:
    """A fake provider as `paddock provider serve --type fake` runs it, in plain text or with the files of a folder; its address."""
    port, stop = free_port(), asyncio.Event()
    names = frozenset({allowed} if allowed else ())
    listening = ProviderServerSettings(host="127.0.0.1", port=port, health_port=None, grace_seconds=1, allowed=names)
    folder = secure or Path("/nowhere")
    settings = server.ServeSettings(type="fake", server=listening, insecure=secure is None, tls_directory=folder, script=script)
    task = asyncio.create_task(server.serve(settings, catalog.find("fake"), stop))
    try:
        for _ in range(100):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        stop.set()
        await task


async def called(run: Callable[[list[str], Console], int], *given: str) -> tuple[int, str]:
    """A command in a thread, beside the server of this loop."""
    made, out = console()
    code = await asyncio.to_thread(run, list(given), made)
    return code, out.getvalue().decode()


@scripted
async def test_a_provider_is_judged_over_the_wire(tmp_path: Path) -> None:
    script = tmp_path / "fake.toml"
    script.write_text(f"{FAST}\n".replace("[task", f'directory = "{tmp_path}"\n[task', 1), encoding="utf-8")
    chosen = [word for name in ("create*", "secrets", "export", "huge-input") for word in ("--only", name)]
    staging = ("--transfer-url", "pvc://claim/run", "--transfer-dir", str(tmp_path / "claim" / "run"))
    async with served(script) as address:
        code, out = await called(provider_conformance.run, "--address", address, "-o", "json", *chosen, *staging)
    result = json.loads(out)
    assert code == 0, out
    assert result["passed"] == len(result["cases"]) == 8 and not result["leftovers"]


@scripted
async def test_a_broken_provider_ends_with_one(tmp_path: Path) -> None:
    script = tmp_path / "fake.toml"
    script.write_text(f'{FAST}\n[[faults]]\nrpc = "Power"\nkind = "Internal"\nmessage = "no power"\ncount = 0\n', encoding="utf-8")
    async with served(script) as address:
        code, out = await called(provider_conformance.run, "--address", address, "--only", "power-on", "--only", "create")
    assert code == 1
    last = out.splitlines()
    assert last[0].startswith("passed  create (") and last[-1] == "1 passed, 1 failed, 0 skipped"
    assert last[1].startswith("failed  power-on (") and last[1].endswith("no power")


@scripted
async def test_tls_is_mutual_and_the_name_is_pinned(tmp_path: Path) -> None:
    authority = providertls.Authority()
    files = providertls.write(tmp_path / "tls", authority.issue("fake.example", "manager.example"))
    strangers = providertls.write(tmp_path / "other", providertls.Authority().issue("fake.example"))
    async with served(None, files, allowed="manager.example") as address:
        given = ("--address", address, "--only", "validate", "--server-name", "fake.example", "--tls-dir")
        assert (await called(provider_conformance.run, *given, str(files)))[0] == 0
        for wrong in ((*given, str(strangers)), (*given, str(files), "--server-name", "other.example"), given[:-3]):
            code, out = await called(provider_conformance.run, *wrong)
            assert code == 2 and "the provider does not answer" in out


def test_nothing_run_and_nobody_there_end_with_two(tmp_path: Path) -> None:
    made, out = console()
    script = tmp_path / "fake.toml"
    script.write_text('without = ["image_import"]', encoding="utf-8")
    given = ["--driver", "fake", "--script", str(script), "--only", "image-prepare"]
    assert provider_conformance.run(given, made) == 2
    assert out.getvalue().decode().endswith("0 passed, 0 failed, 1 skipped\n")
    made, out = console()
    assert provider_conformance.run(["--address", f"127.0.0.1:{free_port()}"], made) == 2
    assert b"the provider does not answer: " in out.getvalue()


def test_a_driver_is_judged_in_this_process() -> None:
    made, out = console()
    assert provider_conformance.run(["--driver", "fake", "--only", "validate"], made) == 0
    assert out.getvalue().decode() == "passed  validate (0.0 s)\n1 passed, 0 failed, 0 skipped\n"


def test_the_cases_are_listed() -> None:
    made, out = console()
    assert provider_conformance.run(["--list"], made) == 0
    assert len(out.getvalue().splitlines()) == len(CASES)


@pytest.mark.parametrize("given", [[], ["--address", "a:1", "--driver", "fake"], ["--address", "a:1", "--script", "x"]])
def test_one_provider_is_named(given: list[str]) -> None:
    with pytest.raises(UsageError):
        provider_conformance.run(given, console()[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "name a driver"),
        (["--type", "libvirt", "--script", "x"], "--script and --seed are for"),
        (["--type", "fake", "--insecure", "--tls-dir", "/x"], "exclude each other"),
        (["--type", "fake", "--port", "70000"], "is no port"),
    ],
)
def test_a_wrong_serve_is_refused(given: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROVIDER_TYPE", raising=False)
    with pytest.raises(UsageError, match=words):
        provider_serve.run(given, console()[0])


@pytest.mark.spec("virtrigaud", 108, 154)
def test_the_variables_of_a_deployment_count_where_options_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[server.ServeSettings] = []

    def take(settings: server.ServeSettings) -> int:
        taken.append(settings)
        return 0

    monkeypatch.setattr(server, "run", take)
    for name, value in (("PROVIDER_TYPE", "fake"), ("LOG_LEVEL", "warn"), ("LOG_FORMAT", "json")):
        monkeypatch.setenv(name, value)
    provider_serve.run(["--port=9000", "--health-port=8080"], console()[0])
    provider_serve.run(["--type", "qemu", "--log-level", "debug", "--log-format", "text"], console()[0])
    assert [(each.type, each.log_level, each.log_format) for each in taken] == [("fake", "warning", "json"), ("qemu", "debug", "text")]
    assert (taken[0].server.port, taken[0].server.health_port) == (9000, 8080)
    monkeypatch.setenv("LOG_LEVEL", "loud")
    with pytest.raises(UsageError, match="LOG_LEVEL cannot be 'loud'"):
        provider_serve.run([], console()[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--type", "mainframe"], '"mainframe" is no type of provider'),
        (["--type", "fake", "--tls-dir", "/nowhere"], "cannot serve without TLS files in /nowhere"),
    ],
)
def test_what_cannot_be_served_says_why(given: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTRIGAUD_PROVIDER_INSECURE", raising=False)
    # This process goes on after the command: what is frozen in it stays, and hypothesis does not find it.
    monkeypatch.setattr(eventloop, "spare_the_collector", lambda: None)
    with pytest.raises(Terminal, match=words):
        provider_serve.run(given, console()[0])


def test_an_unknown_command_is_named() -> None:
    with pytest.raises(Terminal, match='unknown command "provider start"'):
        provider.run(["start"], console()[0])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("host", ("host", 9443)),
        ("host:1", ("host", 1)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]", ("::1", 9443)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_addresses(text: str, parts: tuple[str, int]) -> None:
    assert connection.split(text) == parts


@pytest.mark.parametrize("text", ["", ":80", "host:", "host:x", "host:70000", "::1", "a:b:1"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(connection.BadAddress):
        connection.split(text)


def test_the_cases_of_a_spec_are_listed(tmp_path: Path) -> None:
    shown, out = console()
    assert provider_verify.run(["--list"], shown) == 0
    assert [line.split()[0] for line in out.getvalue().decode().splitlines()] == ["vm-create-delete", "vm-power-cycle"]
    shown, out = console()
    assert provider_verify.run(["--list", "--skip", "*-cycle"], shown) == 0
    assert out.getvalue().decode().split()[0] == "vm-create-delete"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--set image=VALUE"),
        (["--set", "image"], "--set NAME=VALUE"),
        (["-f", "/nowhere/spec.yaml"], "cannot read /nowhere/spec.yaml"),
    ],
)
def test_a_spec_that_cannot_be_used(words: list[str], says: str) -> None:
    with pytest.raises(Terminal) as caught:
        provider_verify.run(words, console()[0])
    assert says in str(caught.value)
