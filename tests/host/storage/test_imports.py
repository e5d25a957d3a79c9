"""Imports by a whole server from servers on loopback: every source with everything that can be said of it, and everything that fails."""

import asyncio
import gzip
import hashlib
import lzma
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from paddock.app.settings import Machines
from tests.host.storage.conftest import CDI, CORE, Data, base64_of, disk, holds, io, pvc, site
from tests.imageserver import Fault, Registry, Seen, Server, authority, basic, layer, running

pytestmark = pytest.mark.needs("qemu")


def guard(seen: Seen) -> Fault | None:
    """Paths say what a request must show."""
    if seen.path.startswith("/private") and seen.headers.get("authorization") != basic("ada", "s3cret"):
        return Fault(401)
    if seen.path.startswith("/headers") and (seen.headers.get("x-one"), seen.headers.get("x-token")) != ("1", "abc"):
        return Fault(403)
    if seen.path.startswith("/bucket") and "X-Amz-Signature" not in parse_qs(urlsplit(seen.path).query):
        return Fault(403)
    return Fault(302, {"Location": "/plain"}) if seen.path == "/moved" else None


@pytest.mark.spec("kubevirt", 64)
def test_every_source_with_what_can_be_said_of_it(work: Path) -> None:
    root, issue = authority()
    own, client = issue("server"), issue("client")
    image = disk(work)
    (work / "tls").mkdir()
    (work / "mutual").mkdir()
    plain, secure = Server(), Server(own.server_context(work / "tls"))
    mutual = Server(own.server_context(work / "mutual", root.certificate))
    registry = Registry("basic")
    for path in ("/plain", "/private", "/headers", "/bucket/key", "/sum", "/resumed", "/reset", "/failing", "/slow", "/moved", "/gcs"):
        plain.put(path, image)
    plain.refuse = guard
    digest = hashlib.sha256(image).hexdigest()
    plain.faults = {
        "/resumed": [Fault(after=len(image) // 2, then="reset")],
        "/reset": [Fault(after=100, then="reset") for _ in range(3)],
        "/failing": [Fault(500), Fault(503)],
        "/slow": [Fault(after=1000, then="close")],
    }
    secure.put("/a", image)
    mutual.put("/a", image)
    registry.image("fedora", "38", layer({"disk/fedora.qcow2": image}))

    def http(server: Server, path: str, **more: Any) -> Data:
        return {"http": {"url": server.url + path, **more}}

    reference = f"docker://{registry.host}/fedora:38"
    succeed: dict[str, Data] = {
        "plain": http(plain, "/plain"),
        "secret": http(plain, "/private", secretRef="account"),
        "headers": http(plain, "/headers", extraHeaders=["X-One: 1"], secretExtraHeaders=["token"]),
        "authority": http(secure, "/a", certConfigMap="roots"),
        "bundle": http(secure, "/a", certConfig={"caBundle": base64_of(root.certificate)}),
        "mutual": http(mutual, "/a", certConfig={"secretRef": {"name": "client"}}),
        "mutual-parts": http(
            mutual,
            "/a",
            certConfigMap="roots",
            certConfig={"cert": {"secretRef": {"name": "client"}}, "key": {"secretRef": {"name": "client"}}},
        ),
        "unchecked": http(secure, "/a", insecureSkipVerify=True),
        "sum": http(plain, "/sum", checksum=f"sha256:{digest}"),
        "moved": http(plain, "/moved"),
        "resumed": http(plain, "/resumed"),
        "reset": http(plain, "/reset"),
        "failing": http(plain, "/failing"),
        "slow": http(plain, "/slow"),
        "registry": {"registry": {"url": reference, "secretRef": "pull"}},
        "s3": {"s3": {"url": plain.url + "/bucket/key", "secretRef": "account"}},
        "gcs": {"gcs": {"url": plain.url + "/gcs"}},
        "blank": {"blank": {}},
    }
    fail: dict[str, tuple[Data, str]] = {
        "no-secret": (http(plain, "/private"), "401"),
        "bad-sum": (http(plain, "/sum", checksum=f"sha256:{'0' * 64}"), "checksum"),
        "missing": (http(plain, "/missing"), "404"),
        "no-pull": ({"registry": {"url": reference}}, ""),
        "no-tag": ({"registry": {"url": f"docker://{registry.host}/fedora:39", "secretRef": "pull"}}, "39"),
        "metadata": ({"http": {"url": "http://169.254.169.254/latest"}}, "169.254"),
        "vddk": ({"vddk": {"url": "https://v", "uuid": "u", "backingFile": "b", "thumbprint": "t", "secretRef": "pull"}}, "VMware"),
        "imageio": ({"imageio": {"url": "https://o", "diskId": "d"}}, "oVirt"),
    }
    # the server may get a better certificate: it is tried again, and said
    wait: dict[str, Data] = {"no-authority": http(secure, "/a"), "no-certificate": http(mutual, "/a", certConfigMap="roots")}
    secrets = {
        "account": {"accessKeyId": "ada", "secretKey": "s3cret"},
        "pull": {"accessKeyId": "me", "secretKey": "secret"},
        "token": {"any": "X-Token: abc"},
        "client": {"tls.crt": client.certificate, "tls.key": client.key, "ca.crt": root.certificate},
    }

    async def script() -> None:
        machines = Machines(image_hosts=("127.0.0.1",), insecure_registries=(registry.host,), network="user")
        async with site(work / "root", machines) as here:
            for name, values in secrets.items():
                await here.post(f"{CORE}/secrets", {"metadata": {"name": name}, "stringData": values})
            await here.post(f"{CORE}/configmaps", {"metadata": {"name": "roots"}, "data": {"ca.pem": root.certificate}})
            for name, source in (*succeed.items(), *wait.items(), *((name, source) for name, (source, _) in fail.items())):
                await here.data_volume(name, {"source": source, "pvc": pvc()})
            for name in succeed:
                await here.until_phase(name, "Succeeded", 120)
                pattern = 0 if name == "blank" else 7
                assert holds(await here.layer(name), pattern), name
            for name, (_, part) in fail.items():
                await here.until_phase(name, "Failed")
                said = await here.running_condition(name)
                assert part in said["message"], (name, said)
                assert "s3cret" not in str(await here.status(name))
            for name in wait:
                await here.until_phase(name, "ImportInProgress")
                said = await here.running_condition(name)
                assert said["reason"] == "Error" and "certificate" in said["message"], (name, said)

    with running(plain), running(secure), running(mutual), running(registry):
        asyncio.run(script())


@pytest.mark.spec("kubevirt", 70)
def test_one_download_for_two_and_nothing_of_one_in_the_other(work: Path) -> None:
    server = Server()
    url = server.put("/a", disk(work))

    async def script() -> None:
        async with site(work / "root") as here:
            for name in ("a", "b"):
                await here.data_volume(name, {"source": {"http": {"url": url}}, "pvc": pvc()})
            for name in ("a", "b"):
                await here.until_phase(name, "Succeeded")
            io(await here.layer("a"), "write -P 9 0 64k")
            assert holds(await here.layer("a"), 9) and holds(await here.layer("b"), 7)
            await here.data_volume("c", {"source": {"http": {"url": url}}, "pvc": pvc()})
            await here.until_phase("c", "Succeeded")
            assert holds(await here.layer("c"), 7)
            # one whole answer; later it is asked whether that still holds
            whole = [seen for seen in server.seen if seen.method == "GET" and "if-none-match" not in seen.headers]
            assert len(whole) == 1

    with running(server):
        asyncio.run(script())


@pytest.mark.parametrize(("form", "pack"), [("raw", None), ("qcow2", gzip.compress), ("raw", lzma.compress), ("vmdk", None), ("vdi", None)])
def test_formats_and_wrappers(work: Path, form: str, pack: Any) -> None:
    image = disk(work, form=form)
    server = Server()
    url = server.put("/a", pack(image) if pack is not None else image)

    async def script() -> None:
        async with site(work / "root") as here:
            await here.data_volume("a", {"source": {"http": {"url": url}}, "storage": {"resources": {"requests": {"storage": "8Mi"}}}})
            await here.until_phase("a", "Succeeded")
            assert holds(await here.layer("a"), 7) and holds(await here.layer("a"), 0, "7M")
            # exactly what was asked for, whatever the claim asks for
            assert io(await here.layer("a"), "length") == "8 MiB\n"
            await here.data_volume("small", {"source": {"http": {"url": url}}, "pvc": pvc("2Mi")})
            await here.until_phase("small", "Failed")
            assert "A larger PVC is required" in (await here.running_condition("small"))["message"]

    with running(server):
        asyncio.run(script())


def test_a_data_source_is_an_import(work: Path) -> None:
    server = Server()
    url = server.put("/a", disk(work))

    async def script() -> None:
        async with site(work / "root") as here:
            reference = {"kind": "DataSource", "name": "golden", "apiGroup": "cdi.kubevirt.io"}
            await here.data_volume("a", {"sourceRef": reference, "storage": {"resources": {"requests": {"storage": "8Mi"}}}})
            await here.post(f"{CDI}/datasources", {"metadata": {"name": "golden"}, "spec": {"source": {"http": {"url": url}}}})
            await here.until_phase("a", "Succeeded")
            copy = {"source": {"pvc": {"namespace": "default", "name": "a"}}, "storage": {}}
            await here.data_volume("copy", copy)
            await here.until_phase("copy", "Succeeded")
            io(await here.layer("copy"), "write -P 3 0 64k")
            assert holds(await here.layer("a"), 7)

    with running(server):
        asyncio.run(script())
