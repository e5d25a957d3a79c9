"""Images from web servers: what servers do to people, and what becomes of it."""

import asyncio
import contextlib
import dataclasses
import gzip
import hashlib
import json
import socket
import threading
from pathlib import Path

import msgspec
import pytest

from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings, Progress
from paddock.base.images.sources import Http, ServerTrust, Source
from tests.coroutines import run_by
from tests.kit.engine.diskimages import qcow2
from tests.kit.servers.imageserver import Fault, Server, authority, basic, running
from tests.unit.base.images.conftest import Fetch, disk

BODY = disk()


def failure(fetch: Fetch, source: Source, **more: int) -> ImageError:
    with pytest.raises(ImageError) as caught:
        fetch(source, **more)
    return caught.value


def test_a_file_becomes_an_image_named_by_its_digest(fetch: Fetch, server: Server, root: Path) -> None:
    image = fetch(Http(server.put("/disk.raw", BODY)))
    assert image.path.read_bytes() == BODY
    assert image.digest == hashlib.sha256(BODY).hexdigest()
    assert image.path.parent == root / "sha256" / image.digest
    assert (image.format, image.virtual_size) == ("raw", len(BODY))
    assert image.path.stat().st_mode & 0o777 == 0o444


def test_what_did_not_change_is_not_fetched_again(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY))
    first = fetch(source)
    second = fetch(source)
    assert first == second
    assert server.seen[1].headers["if-none-match"] == '"one"'
    server.put("/disk", changed := disk(seed=2), etag='"two"')
    assert fetch(source).path.read_bytes() == changed
    assert first.path.read_bytes() == BODY


def test_a_date_serves_where_there_is_no_tag(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY, etag="", modified="Sat, 01 Aug 2026 00:00:00 GMT"))
    fetch(source)
    fetch(source)
    assert server.seen[1].headers["if-modified-since"] == "Sat, 01 Aug 2026 00:00:00 GMT"


def test_without_any_version_it_is_fetched_again_and_found_to_be_the_same(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY, etag=""))
    assert fetch(source) == fetch(source)
    assert len(server.seen) == 2


@run_by(asyncio.run)
async def test_many_who_ask_at_the_same_time_share_one_download(server: Server, root: Path, settings: ImageSettings) -> None:
    source = Http(server.put("/disk", BODY))
    images, others = ImageLibrary(root, settings), ImageLibrary(root, settings)
    try:
        asked = [one.fetch(dataclasses.replace(source)) for one in (images, others) for _ in range(5)]
        assert len(set(await asyncio.gather(*asked))) == 1
    finally:
        await images.close()
        await others.close()
    # Two libraries stand for two processes: the second only asks whether the file is still the same.
    assert len(server.seen) == 2
    assert "if-none-match" in server.seen[1].headers


@pytest.mark.spec("kubermatic", 24)
@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
@pytest.mark.spec("kubevirt", 64)
def test_a_checksum_is_over_what_is_downloaded(algorithm: str, fetch: Fetch, server: Server) -> None:
    packed = gzip.compress(BODY)
    digest = hashlib.new(algorithm, packed).hexdigest()
    url = server.put("/disk.gz", packed)
    bad = failure(fetch, Http(url, checksum=f"{algorithm}:{'0' * len(digest)}"))
    assert (bad.code, bad.fatal) == ("Checksum", True)
    assert digest in str(bad)
    assert fetch(Http(url, checksum=f"{algorithm}:{digest}")).path.read_bytes() == BODY


def test_a_public_file_that_is_here_by_its_checksum_needs_no_server(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY), checksum=hashlib.sha256(BODY).hexdigest())
    first = fetch(source)
    server.faults["/disk"] = [Fault(500)] * 9
    assert fetch(source) == first
    assert len(server.seen) == 1


def test_a_checksum_that_is_none_is_refused(fetch: Fetch, server: Server) -> None:
    assert failure(fetch, Http(server.put("/disk", BODY), checksum="sha256:abc")).code == "Checksum"
    assert not server.seen


@pytest.mark.parametrize("then", ["reset", "close"])
@pytest.mark.spec("kubevirt", 64)
def test_a_broken_connection_is_gone_on_with(then: str, fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=100_000, then=then), Fault(after=50_000, then=then)]
    told: list[Progress] = []
    assert fetch(Http(url), told.append).path.read_bytes() == BODY
    first, second, third = server.seen
    assert "range" not in first.headers
    # The rest of a reset connection's data may be lost with it.
    assert second.headers["if-range"] == '"one"'
    assert int(third.headers["range"][6:-1]) >= int(second.headers["range"][6:-1])
    fractions = [progress.fraction for progress in told if progress.fraction is not None]
    assert fractions == sorted(fractions)


def test_a_file_that_changes_between_two_pieces_is_begun_anew(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    changed = disk(seed=3)
    server.faults["/disk"] = [Fault(after=100_000, then="close")]

    def change(_: object) -> Fault | None:
        if server.seen[-1].headers.get("range"):
            server.put("/disk", changed, etag='"two"')
        return None

    server.refuse = change
    assert fetch(Http(url)).path.read_bytes() == changed


def test_a_server_that_knows_no_ranges_sends_all_of_it_again(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY, ranges=False)
    server.faults["/disk"] = [Fault(after=100_000, then="close")]
    assert fetch(Http(url)).path.read_bytes() == BODY


@pytest.mark.spec("kubevirt", 64)
def test_what_was_downloaded_before_a_crash_is_not_downloaded_again(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=200_000, then="close"), *[Fault(503)] * 3]
    failure(fetch, Http(url))
    # Another run of the program.
    assert fetch(Http(url)).path.read_bytes() == BODY
    assert server.seen[-1].headers["range"] == "bytes=200000-"


def test_what_was_downloaded_before_a_power_loss_is_not_believed(fetch: Fetch, server: Server, root: Path) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=200_000, then="close"), *[Fault(503)] * 3]
    failure(fetch, Http(url))
    (state,) = (root / "partial").glob("*/state.json")
    state.write_text(json.dumps({**json.loads(state.read_text()), "boot": "another"}))
    (state.parent / "body").write_bytes(bytes(200_000))
    assert fetch(Http(url)).path.read_bytes() == BODY


def test_chunks_without_a_length(fetch: Fetch, server: Server) -> None:
    assert fetch(Http(server.put("/disk", BODY, chunked=True))).path.read_bytes() == BODY


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, ("NotFound", True, 1)),
        (410, ("NotFound", True, 1)),
        (400, ("Refused", True, 1)),
        (401, ("NotAuthorized", True, 1)),
        (403, ("NotAuthorized", True, 1)),
        (408, ("Unreachable", False, 4)),
        (429, ("Unreachable", False, 4)),
        (500, ("Unreachable", False, 4)),
        (503, ("Unreachable", False, 4)),
    ],
)
@pytest.mark.spec("kubevirt", 64)
@pytest.mark.spec("kubermatic", 36)
def test_statuses(status: int, expected: tuple[str, bool, int], fetch: Fetch, server: Server, root: Path) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(status)] * 9
    error = failure(fetch, Http(url))
    assert (error.code, error.fatal, len(server.seen)) == expected
    assert str(status) in str(error)
    assert not list((root / "partial").iterdir())
    assert not list((root / "work").iterdir())


@pytest.mark.spec("kubevirt", 64)
def test_a_server_that_recovers_is_asked_again(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(500), Fault(503, {"Retry-After": "0"}), Fault(429)]
    assert fetch(Http(url)).path.read_bytes() == BODY


@pytest.mark.spec("kubevirt", 64)
@run_by(asyncio.run)
async def test_a_silent_server_is_given_up(server: Server, root: Path, settings: ImageSettings) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=0, then="stall")] * 9
    impatient = msgspec.structs.replace(settings, stall_seconds=0.1, attempts=2)
    with pytest.raises(ImageError) as caught:
        await ImageLibrary(root, impatient).fetch(Http(url))
    assert (caught.value.code, caught.value.fatal) == ("TimedOut", False)


def test_nobody_listens(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    server.server_close()
    error = failure(fetch, Http(url))
    assert (error.code, error.fatal) == ("Unreachable", False)


@pytest.mark.parametrize("as_kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_is_told_from_an_image(as_kind: str, fetch: Fetch, server: Server) -> None:
    page = b"<!DOCTYPE html><html><head><title>Please log in</title></head></html>"
    error = failure(fetch, Http(server.put("/disk.qcow2", page, kind=as_kind)))
    assert (error.code, error.fatal) == ("NotAnImage", True)
    assert 'is a web page ("Please log in")' in str(error)


def test_nothing_is_no_image(fetch: Fetch, server: Server) -> None:
    assert "empty" in str(failure(fetch, Http(server.put("/disk", b""))))


# --- redirects, credentials, addresses ------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 64)
def test_redirects_are_followed_and_secrets_are_not_carried_along(fetch: Fetch, server: Server) -> None:
    with running(Server()) as other:
        target = other.put("/real?signature=geheim", BODY)
        other.put("/real", BODY)
        server.faults["/disk"] = [Fault(302, {"Location": "/here"})]
        server.faults["/here"] = [Fault(307, {"Location": target})]
        source = Http(
            f"{server.url}/disk",
            username="me",
            password="geheim",
            headers=(("X-Plain", "1"), ("Authorization", "also a secret")),
            secret_headers=(("X-Token", "geheim"),),
        )
        assert fetch(source).path.read_bytes() == BODY
        assert [seen.headers.get("x-token") for seen in server.seen] == ["geheim", "geheim"]
        assert server.seen[1].headers["authorization"] == basic("me", "geheim")
        (seen,) = other.seen
        assert seen.headers["x-plain"] == "1"
        assert not {"authorization", "x-token"} & set(seen.headers)
        assert "geheim" not in repr(source)


def test_a_signed_url_is_known_by_what_it_leads_to_and_its_signature_is_kept_nowhere(fetch: Fetch, server: Server, root: Path) -> None:
    server.put("/disk", BODY)
    first = fetch(Http(f"{server.url}/disk?signature=geheim1", stands_for="s3://bucket/disk"))
    assert fetch(Http(f"{server.url}/disk?signature=geheim2", stands_for="s3://bucket/disk")) == first
    assert server.seen[1].headers["if-none-match"] == '"one"'
    fetch(Http(f"{server.url}/disk?signature=geheim3"))
    assert not any(b"geheim" in path.read_bytes() for path in root.rglob("*.json"))


def test_redirects_in_a_circle_end(fetch: Fetch, server: Server) -> None:
    server.faults["/disk"] = [Fault(302, {"Location": "/disk"})] * 99
    error = failure(fetch, Http(f"{server.url}/disk"))
    assert "redirects more than 10 times" in str(error)
    assert len(server.seen) == 11


@pytest.mark.parametrize(
    "to",
    [
        *("http://169.254.169.254/latest", "file:///etc/passwd", "http://[fe80::1]/x", "http://[::ffff:169.254.1.1]/"),
        *("http://100.100.100.200/x", "http://192.0.0.192/"),
    ],
)
@pytest.mark.spec("kubevirt", 64)
def test_a_redirect_leads_to_no_other_place_than_an_image_may_come_from(to: str, fetch: Fetch, server: Server) -> None:
    server.faults["/disk"] = [Fault(302, {"Location": to})]
    error = failure(fetch, Http(f"{server.url}/disk"))
    assert error.fatal
    assert error.code in ("Denied", "Refused")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "2130706433", "127.1"])
@run_by(asyncio.run)
async def test_loopback_is_denied_unless_it_is_allowed(host: str, server: Server, root: Path, settings: ImageSettings) -> None:
    closed = msgspec.structs.replace(settings, allow=())
    with pytest.raises(ImageError) as caught:
        await ImageLibrary(root, closed).fetch(Http(f"http://{host}:{server.server_address[1]}/disk"))
    assert (caught.value.code, caught.value.fatal) == ("Denied", True)
    assert not server.seen


@pytest.mark.spec("kubevirt", 64)
def test_basic_authentication(fetch: Fetch, server: Server) -> None:
    url = server.put("/disk", BODY)
    server.refuse = lambda seen: None if seen.headers.get("authorization") == basic("me", "geheim") else Fault(401)
    assert failure(fetch, Http(url)).code == "NotAuthorized"
    assert failure(fetch, Http(url, username="me", password="falsch")).code == "NotAuthorized"
    assert fetch(Http(url, username="me", password="geheim")).path.read_bytes() == BODY
    # That it is here helps nobody who may not have it.
    assert failure(fetch, Http(url)).code == "NotAuthorized"
    assert failure(fetch, Http(url, checksum=hashlib.sha256(BODY).hexdigest())).code == "NotAuthorized"


@pytest.mark.spec("kubevirt", 64)
def test_extra_headers(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY), headers=(("X-One", "1"),), secret_headers=(("X-Two", "geheim"),))
    fetch(source)
    assert (server.seen[0].headers["x-one"], server.seen[0].headers["x-two"]) == ("1", "geheim")


@run_by(asyncio.run)
async def test_a_proxy_is_asked_in_place_of_the_server(server: Server, root: Path, settings: ImageSettings) -> None:
    server.put("/disk", BODY)
    proxied = msgspec.structs.replace(settings, proxies={"http": f"http://user:pass@{server.host}"})
    assert (await ImageLibrary(root, proxied).fetch(Http("http://images.invalid/disk"))).path.read_bytes() == BODY
    assert server.seen[0].path == "http://images.invalid/disk"
    assert server.seen[0].headers["host"] == "images.invalid"
    assert server.seen[0].headers["proxy-authorization"] == basic("user", "pass")


# --- TLS ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 64)
def test_a_private_authority_and_a_client_certificate(fetch: Fetch, tmp_path: Path) -> None:
    root, issue = authority()
    one, client = issue("server"), issue("client")
    with running(Server(one.server_context(tmp_path))) as server:
        url = server.put("/disk", BODY)
        unknown = failure(fetch, Http(url))
        assert (unknown.code, unknown.fatal) == ("Certificate", False)
        assert "certificate" in str(unknown)
        assert fetch(Http(url, trust=ServerTrust(ca=root.certificate))).path.read_bytes() == BODY
        assert fetch(Http(url, trust=ServerTrust(verify=False))).path.read_bytes() == BODY
        with pytest.raises(ImageError, match="CA bundle"):
            fetch(Http(url, trust=ServerTrust(ca="nonsense")))
    with running(Server(one.server_context(tmp_path, client_authority=root.certificate))) as server:
        url = server.put("/disk", disk(seed=9))
        without = failure(fetch, Http(url, trust=ServerTrust(ca=root.certificate)))
        assert without.code == "Certificate"
        known = ServerTrust(ca=root.certificate, certificate=client.certificate, key=client.key)
        assert fetch(Http(url, trust=known)).path.read_bytes() == disk(seed=9)
        assert "PRIVATE" not in repr(known)
        with pytest.raises(ImageError, match="client certificate"):
            fetch(Http(url, trust=ServerTrust(certificate=client.certificate, key="nonsense")))


def test_a_client_certificate_is_not_shown_to_another_server(fetch: Fetch, tmp_path: Path) -> None:
    root, issue = authority()
    one, client = issue("server"), issue("client")
    with (
        running(Server(one.server_context(tmp_path, client_authority=root.certificate))) as first,
        running(Server(one.server_context(tmp_path, client_authority=root.certificate))) as second,
    ):
        target = second.put("/disk", BODY)
        first.faults["/disk"] = [Fault(302, {"Location": target})]
        trust = ServerTrust(ca=root.certificate, certificate=client.certificate, key=client.key)
        assert failure(fetch, Http(f"{first.url}/disk", trust=trust)).code == "Certificate"
        assert not second.seen


# --- sizes, progress, ends ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubermatic", 34)
def test_a_disk_that_is_too_large_for_one_is_there_for_another(fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY))
    error = failure(fetch, source, limit=1 << 18)
    assert (error.code, error.fatal) == ("TooLarge", True)
    assert "the image needs 293Ki, the volume has 256Ki" in str(error) and "larger PVC is required" in str(error)
    assert fetch(source, limit=1 << 20).virtual_size == len(BODY)


def test_progress_is_unknown_first_and_whole_at_the_end(fetch: Fetch, server: Server) -> None:
    told: list[Progress] = []
    fetch(Http(server.put("/disk", BODY)), told.append)
    assert Progress().percent == "N/A"
    assert told[-1].percent == "100.0%"
    assert [progress.step for progress in told if progress.step != "downloading"] == ["storing", "done"]


@run_by(asyncio.run)
async def test_the_last_who_leaves_ends_the_download_and_the_next_goes_on(server: Server, root: Path, settings: ImageSettings) -> None:
    body = disk(1 << 20)
    source = Http(server.put("/disk", body))
    server.faults["/disk"] = [Fault(after=900_000, then="stall")]
    images = ImageLibrary(root, settings)
    asked = [asyncio.ensure_future(images.fetch(source)) for _ in range(2)]
    while not any(path.stat().st_size >= 1 << 19 for path in (root / "partial").glob("*/body")):
        await asyncio.sleep(0.005)
    asked[0].cancel()
    await asyncio.wait(asked[:1])
    assert not asked[1].done()
    asked[1].cancel()
    await asyncio.wait(asked)
    await images.close()
    assert (await ImageLibrary(root, settings).fetch(source)).path.read_bytes() == body
    assert int(server.seen[-1].headers["range"][6:-1]) >= 1 << 19


def test_a_disk_that_is_too_large_is_not_downloaded_first(fetch: Fetch, server: Server) -> None:
    raw = server.put("/raw", bytes(40 << 20))
    image = server.put("/qcow2", qcow2(size=64 << 30) + bytes(40 << 20))
    for url in (raw, image):
        server.faults[url.removeprefix(server.url)] = [Fault(after=2 << 20, then="stall")]
        error = failure(fetch, Http(url), limit=32 << 20)
        assert (error.code, error.fatal) == ("TooLarge", True)


def connect_proxy(to: tuple[str, int], seen: list[bytes]) -> socket.socket:
    """A proxy that takes one tunnel, wherever it is asked to lead, to this address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        client, _ = listener.accept()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        seen.append(head)
        with client, socket.create_connection(to) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pump, args=(server, client))
            back.start()
            pump(client, server)
            back.join()

    threading.Thread(target=serve, daemon=True).start()
    return listener


@run_by(asyncio.run)
async def test_tls_goes_through_a_proxy_in_a_tunnel(root: Path, settings: ImageSettings, tmp_path: Path) -> None:
    authorities, issue = authority()
    seen: list[bytes] = []
    with running(Server(issue("server").server_context(tmp_path))) as server:
        server.put("/disk", BODY)
        with connect_proxy(("127.0.0.1", server.server_address[1]), seen) as proxy:
            place = f"http://user:pass@127.0.0.1:{proxy.getsockname()[1]}"
            # The proxy is the operator's: that it is on this host needs no leave.
            proxied = msgspec.structs.replace(settings, proxies={"https": place}, allow=("localhost",))
            images = ImageLibrary(root, proxied)
            trust = ServerTrust(ca=authorities.certificate)
            source = Http("https://localhost:9/disk", secret_headers=(("X-Token", "geheim"),), trust=trust)
            try:
                assert (await images.fetch(source)).path.read_bytes() == BODY
            finally:
                await images.close()
            assert server.seen[0].headers["x-token"] == "geheim"
    assert seen[0].startswith(b"CONNECT localhost:9 ")
    assert basic("user", "pass").encode() in seen[0]
    assert b"geheim" not in seen[0]
