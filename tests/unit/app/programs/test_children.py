"""The programs of Providers on an embedded server: real processes, confined, supervised, and ended with their Provider and with Paddock."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from paddock.app.programs.relay import LogRelay
from paddock.base.clock import SystemClock
from paddock.contract import issuing, tls
from paddock.contract import messages as m
from paddock.contract.client import ProviderClient, RemoteSettings
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.pool import PoolTarget
from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from paddock_drivers.fake import diskfiles
from paddock_drivers.fake.diskfiles import DiskFile
from paddock_drivers.kit import staging
from paddock_drivers.kit.staging import StagedFile, StagingSettings
from tests.coroutines import scripted
from tests.kit.providers import providertls
from tests.kit.providers.providerchildren import KEY, NUMBERS, PASSWORD, gone, programs, provider

NAME = tls.server_name(*KEY)
CREATE = m.CreateRequest(
    name="web",
    class_json='{"CPU":1,"MemoryMiB":512}',
    image_json='{"TemplateName":"any"}',
    owner=m.ObjectIdentity(uid="uid-1", namespace="default", name="web"),
)


def words(pid: int, file: str) -> str:
    return Path(f"/proc/{pid}/{file}").read_bytes().replace(b"\0", b" ").decode()


async def called(port: int, material: TlsMaterial | None, name: str = NAME) -> ProviderError | None:
    """Call a child as somebody; returns the refusal."""
    context = tls.client_context(material) if material is not None else None
    client = ProviderClient(PoolTarget("127.0.0.1", port, context, name), RemoteSettings("it", qps=None))
    try:
        await client.validate(m.ValidateRequest())
    except ProviderError as error:
        return error
    finally:
        await client.close()
    return None


@pytest.mark.spec("virtrigaud", 64)
@pytest.mark.spec("virtrigaud", 101)
@scripted
async def test_a_child_serves_its_own_manager_and_nobody_else(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        client = await life.running()
        assert (await client.validate(m.ValidateRequest())).ok
        found = life.connections.find(KEY, "libvirt")
        assert found.runtime.tls is not None and (found.runtime.tls.status, found.runtime.tls.reason) == ("True", "Enabled")
        port = int(found.runtime.endpoint.rpartition(":")[2])
        plain, foreign = await called(port, None), await called(port, providertls.Authority().issue(issuing.MANAGER))
        assert plain is not None and plain.kind is ErrorKind.UNAVAILABLE
        assert foreign is not None and "certificate" in str(foreign)
        # The child's own certificate is of the right authority, and not the manager's.
        own = tmp_path / "providers" / "1" / "tls"
        material = TlsMaterial(*((own / name).read_bytes() for name in ("tls.crt", "tls.key", "ca.crt")))
        assert await called(port, material) is not None


@pytest.mark.spec("virtrigaud", 102)
@scripted
async def test_no_secret_is_in_the_arguments_or_the_environment(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        await life.running()
        pid = life.pid()
        key = (tmp_path / "providers" / "1" / "tls" / "tls.key").read_text().splitlines()[1]
        for shown in (words(pid, "cmdline"), words(pid, "environ"), words(os.getpid(), "cmdline")):
            assert PASSWORD.decode() not in shown and key not in shown
        file = tmp_path / "providers" / "1" / "credentials" / "password"
        assert file.read_bytes() == PASSWORD and file.stat().st_mode & 0o007 == 0
        assert file.parent.stat().st_mode & 0o007 == 0
        status = words(pid, "status")
        assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
        if NUMBERS:
            assert f"Uid:\t{NUMBERS[0]}\t{NUMBERS[0]}" in status and file.stat().st_gid == NUMBERS[0]
            assert "CapBnd:\t0000000000000000" in status
    assert not (tmp_path / "providers").exists()


@scripted
async def test_a_child_knows_where_on_this_host_images_may_come_from(tmp_path: Path) -> None:
    async with programs(tmp_path, image_hosts=("127.0.0.0/8", "lab")) as life:
        await life.running()
        assert "PROVIDER_IMAGE_HOSTS=127.0.0.0/8,lab" in words(life.pid(), "environ").split()


@scripted
async def test_a_child_reads_its_own_files_and_nothing_else_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paddock.app.programs import launch  # noqa: PLC0415 - patched here

    secret = tmp_path / "store.db"
    secret.write_text("everybody's objects")
    secret.chmod(0o644)
    code = f"""
import os
for path, flags in (({str(secret)!r}, os.O_RDONLY), ("/etc/group", os.O_RDONLY), ("/proc/1/cmdline", os.O_RDONLY),
                    ({str(tmp_path / "providers")!r}, os.O_RDONLY), ("/tmp/from-a-child", os.O_WRONLY | os.O_CREAT)):
    try:
        os.open(path, flags)
    except OSError:
        continue
    raise SystemExit(f"could open {{path}}")
own = {str(tmp_path / "providers" / "1" / "credentials" / "password")!r}
staged = os.open({str(tmp_path / "staging" / "default" / "claim")!r}, os.O_WRONLY | os.O_CREAT, 0o666)
raise SystemExit("as it should be: " + open(own).read()[:7])
"""
    monkeypatch.setattr(launch, "_serve", lambda given: ("-I", "-c", code))
    async with programs(tmp_path) as life:
        found = await life.until(lambda each: "ended" in each.runtime.message)
        assert "as it should be: correct" in found.runtime.message
        made = (tmp_path / "staging" / "default" / "claim").stat()
        assert not NUMBERS or made.st_gid == (tmp_path / "staging" / "default").stat().st_gid != 0
        assert made.st_mode & 0o007 == 0


@pytest.mark.spec("virtrigaud", 67)
@scripted
async def test_a_killed_child_is_started_again_and_its_client_finds_it(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        client = await life.running()
        pid = life.pid()
        await client.create(CREATE)
        os.kill(pid, signal.SIGKILL)
        await gone(pid)
        found = await life.until(lambda each: each.runtime.phase == "Starting")
        assert "ended with signal SIGKILL" in found.runtime.message and found.driver is client
        with pytest.raises(ProviderError) as error:
            await client.validate(m.ValidateRequest())
        assert error.value.kind is ErrorKind.UNAVAILABLE
        assert await life.running() is client and life.pid() != pid
        assert (await client.validate(m.ValidateRequest())).ok


@pytest.mark.spec("virtrigaud", 68)
@scripted
async def test_other_credentials_and_certificates_restart_the_child(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        client = await life.running()
        pids = [life.pid()]
        await life.ensure()
        assert life.pid() == pids[0]
        assert await life.running(secrets=ProviderSecrets({"password": b"another one"})) is client
        pids.append(life.pid())
        assert (tmp_path / "providers" / "2" / "credentials" / "password").read_bytes() == b"another one"
        own = provider(runtime={"image": "a:1", "service": {"tls": {"secretRef": {"name": "tls"}}}})
        authority = providertls.Authority()
        for _ in range(2):
            material = authority.issue(NAME)
            files = {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.authority}
            client = await life.running(own, ProviderSecrets({"password": PASSWORD}, files))
            assert (await client.validate(m.ValidateRequest())).ok
            pids.append(life.pid())
        # The one certificate of the Secret is the manager's, too; another one of its authority is not.
        port = int(life.connections.find(KEY, "libvirt").runtime.endpoint.rpartition(":")[2])
        refused = await called(port, authority.issue("another-program"))
        assert refused is not None and refused.kind is ErrorKind.UNAUTHORIZED and await called(port, material) is None
        assert len(set(pids)) == 4
        for pid in pids[:-1]:
            await gone(pid)


@pytest.mark.spec("virtrigaud", 71)
@scripted
async def test_plain_text_is_served_when_it_is_asked_for(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        client = await life.running(provider(runtime={"image": "a:1", "service": {"tls": {"enabled": False}}}))
        assert (await client.validate(m.ValidateRequest())).ok
        found = life.connections.find(KEY, "libvirt").runtime.tls
        assert found is not None and (found.status, found.reason) == ("False", "ExplicitlyDisabled")


@scripted
async def test_the_child_of_a_deleted_provider_ends(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        await life.running()
        await life.running(provider("other"))
        pid = life.pid()
        await life.connections.release(KEY)
        await gone(pid)
        assert list(life.programs.pids()) == [KEY._replace(name="other")]
        assert life.connections.find(KEY, "libvirt").driver is None
        pid = life.pid(KEY._replace(name="other"))
    assert not os.path.exists(f"/proc/{pid}")


_SERVER = """
import asyncio, sys
from pathlib import Path
from tests.kit.providers.providerchildren import Programs

async def main():
    life = Programs(Path(sys.argv[1]))
    await life.running()
    print(life.pid(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", [False, True])
@scripted
async def test_a_child_ends_with_paddock_however_that_ends(tmp_path: Path, stopped: bool) -> None:
    root = Path(__file__).parents[4]
    with subprocess.Popen([sys.executable, "-c", _SERVER, str(tmp_path)], cwd=root, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        pid = int(await asyncio.to_thread(server.stdout.readline))
        if stopped:
            # A child that does not look any more ends all the same.
            os.kill(pid, signal.SIGSTOP)
        server.kill()
    async with asyncio.timeout(30):
        while os.path.exists(f"/proc/{pid}") and words(pid, "stat").rpartition(")")[2].split()[0] != "Z":
            await asyncio.sleep(0.01)


@scripted
async def test_what_a_child_must_not_get_is_refused(tmp_path: Path) -> None:
    async with programs(tmp_path) as life:
        image = {"image": "a:1"}
        for wanted, secrets, reason, text in (
            (provider(), ProviderSecrets(None), "CredentialsMissing", "Secret default/lab of spec.credentialSecretRef does not exist"),
            (provider(type="firecracker", endpoint="https://fc"), None, "DriverMissing", "provider serve --type firecracker"),
            (provider(runtime={**image, "env": [{"name": "LD_PRELOAD", "value": "a.so"}]}), None, "InvalidConfiguration", "LD_PRELOAD"),
            (provider(runtime={**image, "env": [{"name": "PROVIDER_TYPE", "value": "x"}]}), None, "InvalidConfiguration", "itself"),
            # A tenant would read web servers of this host as images.
            (provider(runtime={**image, "env": [{"name": "PROVIDER_IMAGE_HOSTS", "value": "*"}]}), None, "InvalidConfiguration", "itself"),
            (provider(endpoint="qemu+tcp://169.254.169.254/system"), None, "InvalidConfiguration", "metadata service"),
            (provider(endpoint="qemu+tcp://127.0.0.1/system"), None, "InvalidConfiguration", "--provider-from 127.0.0.1"),
            (provider(endpoint="qemu:///system"), None, "InvalidConfiguration", "--provider-from 127.0.0.1"),
            (
                provider(runtime={**image, "service": {"tls": {"secretRef": {"name": "gone"}}}}),
                None,
                "TLSNotConfigured",
                "Secret default/gone of spec.runtime.service.tls.secretRef does not exist",
            ),
        ):
            found = await life.ensure(wanted, secrets)
            assert (found.driver, found.runtime.reason) == (None, reason), found
            assert text in found.runtime.message and not life.programs.pids()


@scripted
async def test_hosts_that_are_allowed_may_be_named(tmp_path: Path) -> None:
    async with programs(tmp_path, hosts=("127.0.0.0/8",)) as life:
        await life.running(provider(endpoint="qemu+tcp://127.0.0.1/system"))


@scripted
async def test_a_program_that_cannot_start_is_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    async with programs(tmp_path, drivers={"libvirt": "paddock.nowhere:make"}) as life:
        found = await life.until(lambda each: "ended" in each.runtime.message)
        assert found.runtime.phase == "Starting" and "cannot load the driver paddock.nowhere:make" in found.runtime.message
        assert found.driver is None


@pytest.mark.spec("virtrigaud", 102)
@scripted
async def test_the_log_of_a_child_says_whose_it_is_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    relay = LogRelay("default/lab", {"password": PASSWORD + b"\n", "key": b"-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END-----"})
    reading, writing = os.pipe()
    lines = [
        msgspec.json.encode({"level": "warning", "message": f"login with {PASSWORD.decode()} failed", "user": "root"}),
        b"Traceback: MIIEvQIBADANBgkqhkiG9w0 is no key",
        b"x" * (1 << 20),
        msgspec.json.encode({"level": "info", "message": "after it", "host": f"https://me:{PASSWORD.decode()}@lab"}),
    ]
    task = asyncio.create_task(relay.run(reading))
    with os.fdopen(writing, "wb") as file:
        for line in lines:
            await asyncio.to_thread(file.write, line + b"\n")
            await asyncio.to_thread(file.flush)
    await task
    said = [(record.levelname, record.getMessage(), vars(record)["provider"]) for record in caplog.records]
    assert said == [
        ("WARNING", "provider: login with <hidden> failed", "default/lab"),
        ("ERROR", "provider: Traceback: <hidden> is no key", "default/lab"),
        ("INFO", "provider: after it", "default/lab"),
    ]
    assert vars(caplog.records[2])["provider_host"] == "https://<hidden>@lab" and relay.last == "Traceback: <hidden> is no key"


@scripted
async def test_a_flood_of_lines_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    relay = LogRelay("default/lab", {})
    reading, writing = os.pipe()
    task = asyncio.create_task(relay.run(reading))
    with os.fdopen(writing, "wb") as file:
        await asyncio.to_thread(file.write, b"again\n" * 5000)
    await task
    assert len(caplog.records) == 1001 and "cut off" in caplog.records[-1].getMessage()


@pytest.mark.spec("virtrigaud", 156)
@pytest.mark.skipif(not NUMBERS, reason="only root gives children users of their own")
@pytest.mark.parametrize("umask", [0o077, 0o022], ids=["server", "shell"])
@scripted
async def test_a_child_takes_the_disk_that_a_driver_in_the_server_has_exported(tmp_path: Path, umask: int) -> None:
    """The server is root and keeps its files to itself; its child has a user of its own, and their group in common."""
    url, source = "pvc://claim/vmmigrations/default/move/export", tmp_path / "disk"
    diskfiles.write(source, "raw", DiskFile(1 << 20, b"booted once\n"))
    checksum = hashlib.sha256(source.read_bytes()).hexdigest()
    async with programs(tmp_path / "programs") as life:
        client = await life.running()
        settings = StagingSettings(claims=tmp_path / "programs" / "staging" / "default")
        before = os.umask(umask)
        try:
            with StagedFile(staging.find(settings, url, {}, "", "")) as file:
                os.write(file.handle, source.read_bytes())
                file.finish()
        finally:
            os.umask(before)
        taken = await client.import_disk(m.ImportDiskRequest(source_url=url, target_name="moved", format="raw", expected_checksum=checksum))
        assert taken.checksum == checksum and taken.actual_size_bytes == 1 << 20
        await staging.remove(staging.find(settings, url, {}, "", ""), SystemClock())
        assert not list((settings.claims or tmp_path).iterdir())
