"""Imports by a whole server from servers on loopback: every source with everything that can be said of it, and everything that fails."""

import asyncio
import gzip
import hashlib
import lzma
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from paddock.app.options.settings import MachineSettings
from tests.coroutines import run_by
from tests.host.storage.conftest import CDI, CORE, Data, base64_of, disk, holds, io, pvc, site
from tests.kit.servers.imageserver import Fault, Registry, Seen, Server, authority, basic, layer, running

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


class Origins:
    """Servers on loopback, each with what it asks for, and one image on all of them."""

    def __init__(self, work: Path) -> None:
        self.root, issue = authority()
        own, self.client = issue("server"), issue("client")
        self.image = disk(work)
        (work / "tls").mkdir()
        (work / "mutual").mkdir()
        self.plain, self.secure = Server(), Server(own.server_context(work / "tls"))
        self.mutual = Server(own.server_context(work / "mutual", self.root.certificate))
        self.registry = Registry("basic")
        for path in ("/plain", "/private", "/headers", "/bucket/key", "/sum", "/resumed", "/reset", "/failing", "/slow", "/moved", "/gcs"):
            self.plain.put(path, self.image)
        self.plain.refuse = guard
        self.plain.faults = {
            "/resumed": [Fault(after=len(self.image) // 2, then="reset")],
            "/reset": [Fault(after=100, then="reset") for _ in range(3)],
            "/failing": [Fault(500), Fault(503)],
            "/slow": [Fault(after=1000, then="close")],
        }
        self.secure.put("/a", self.image)
        self.mutual.put("/a", self.image)
        self.registry.image("fedora", "38", layer({"disk/fedora.qcow2": self.image}))
        self.reference = f"docker://{self.registry.host}/fedora:38"

    @property
    def secrets(self) -> dict[str, dict[str, str]]:
        """The Secrets that the sources refer to."""
        return {
            "account": {"accessKeyId": "ada", "secretKey": "s3cret"},
            "pull": {"accessKeyId": "me", "secretKey": "secret"},
            "token": {"any": "X-Token: abc"},
            "client": {"tls.crt": self.client.certificate, "tls.key": self.client.key, "ca.crt": self.root.certificate},
        }

    def good(self) -> dict[str, Data]:
        """Sources that can be imported, some of them after a while."""
        plain, secure, mutual = self.plain, self.secure, self.mutual
        reference = {"secretRef": {"name": "client"}}
        return {
            "plain": http(plain, "/plain"),
            "secret": http(plain, "/private", secretRef="account"),
            "headers": http(plain, "/headers", extraHeaders=["X-One: 1"], secretExtraHeaders=["token"]),
            "authority": http(secure, "/a", certConfigMap="roots"),
            "bundle": http(secure, "/a", certConfig={"caBundle": base64_of(self.root.certificate)}),
            "mutual": http(mutual, "/a", certConfig=reference),
            "mutual-parts": http(mutual, "/a", certConfigMap="roots", certConfig={"cert": reference, "key": reference}),
            "unchecked": http(secure, "/a", insecureSkipVerify=True),
            "sum": http(plain, "/sum", checksum=f"sha256:{hashlib.sha256(self.image).hexdigest()}"),
            "moved": http(plain, "/moved"),
            "resumed": http(plain, "/resumed"),
            "reset": http(plain, "/reset"),
            "failing": http(plain, "/failing"),
            "slow": http(plain, "/slow"),
            "registry": {"registry": {"url": self.reference, "secretRef": "pull"}},
            "s3": {"s3": {"url": plain.url + "/bucket/key", "secretRef": "account"}},
            "gcs": {"gcs": {"url": plain.url + "/gcs"}},
            "blank": {"blank": {}},
        }

    def bad(self) -> dict[str, tuple[Data, str]]:
        """Sources that cannot be imported, and what is said."""
        tag = f"docker://{self.registry.host}/fedora:39"
        vddk = {"url": "https://v", "uuid": "u", "backingFile": "b", "thumbprint": "t", "secretRef": "pull"}
        return {
            "no-secret": (http(self.plain, "/private"), "401"),
            "bad-sum": (http(self.plain, "/sum", checksum=f"sha256:{'0' * 64}"), "checksum"),
            "missing": (http(self.plain, "/missing"), "404"),
            "no-pull": ({"registry": {"url": self.reference}}, ""),
            "no-tag": ({"registry": {"url": tag, "secretRef": "pull"}}, "39"),
            "metadata": ({"http": {"url": "http://169.254.169.254/latest"}}, "169.254"),
            "vddk": ({"vddk": vddk}, "VMware"),
            "imageio": ({"imageio": {"url": "https://o", "diskId": "d"}}, "oVirt"),
        }


def http(server: Server, path: str, **more: Any) -> Data:
    return {"http": {"url": server.url + path, **more}}


@pytest.mark.spec("kubermatic", 23)
@pytest.mark.spec("kubevirt", 10)
@pytest.mark.spec("kubevirt", 64)
@run_by(asyncio.run)
async def test_every_source_with_what_can_be_said_of_it(work: Path) -> None:
    origins = Origins(work)
    good, bad = origins.good(), origins.bad()
    # the server may get a better certificate: it is tried again, and said
    wait = {"no-authority": http(origins.secure, "/a"), "no-certificate": http(origins.mutual, "/a", certConfigMap="roots")}
    with running(origins.plain), running(origins.secure), running(origins.mutual), running(origins.registry):
        machines = MachineSettings(image_hosts=("127.0.0.1",), insecure_registries=(origins.registry.host,), network="user")
        async with site(work / "root", machines) as here:
            for name, values in origins.secrets.items():
                await here.post(f"{CORE}/secrets", {"metadata": {"name": name}, "stringData": values})
            await here.post(f"{CORE}/configmaps", {"metadata": {"name": "roots"}, "data": {"ca.pem": origins.root.certificate}})
            for name, source in (*good.items(), *wait.items(), *((name, source) for name, (source, _) in bad.items())):
                await here.data_volume(name, {"source": source, "pvc": pvc()})
            for name in good:
                await here.until_phase(name, "Succeeded", 120)
                assert holds(await here.layer(name), 0 if name == "blank" else 7), name
            for name, (_, part) in bad.items():
                await here.until_phase(name, "Failed")
                said = await here.running_condition(name)
                assert part in said["message"], (name, said)
                assert "s3cret" not in str(await here.status(name))
            for name in wait:
                await here.until_phase(name, "ImportInProgress")
                await here.until_said(name, "certificate")


@pytest.mark.spec("kubevirt", 70)
@run_by(asyncio.run)
async def test_one_download_for_two_and_nothing_of_one_in_the_other(work: Path) -> None:
    server = Server()
    url = server.put("/a", disk(work))
    with running(server):
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


@pytest.mark.spec("kubevirt", 177)
@run_by(asyncio.run)
async def test_a_claim_that_is_deleted_comes_back_with_the_content_of_its_source(work: Path) -> None:
    server = Server()
    url = server.put("/a", disk(work))
    with running(server):
        async with site(work / "root") as here:
            await here.data_volume("a", {"source": {"http": {"url": url}}, "pvc": pvc()})
            await here.until_phase("a", "Succeeded")
            claim = f"{CORE}/persistentvolumeclaims/a"
            before = (await here.get(claim))["metadata"]["uid"]
            io(await here.layer("a"), "write -P 9 0 64k")
            await here.client.request("DELETE", claim)

            async def anew() -> bool:
                found = (await here.get(f"{CORE}/persistentvolumeclaims"))["items"]
                return [each["status"].get("phase") for each in found if each["metadata"]["uid"] != before] == ["Bound"]

            await here.until("the claim is back", anew)
            await here.until_phase("a", "Succeeded")
            assert holds(await here.layer("a"), 7) and here.volumes.get(before) is None


@pytest.mark.parametrize(("form", "pack"), [("raw", None), ("qcow2", gzip.compress), ("raw", lzma.compress), ("vmdk", None), ("vdi", None)])
@run_by(asyncio.run)
async def test_formats_and_wrappers(work: Path, form: str, pack: Any) -> None:
    image = disk(work, form=form)
    server = Server()
    url = server.put("/a", pack(image) if pack is not None else image)
    with running(server):
        async with site(work / "root") as here:
            await here.data_volume("a", {"source": {"http": {"url": url}}, "storage": {"resources": {"requests": {"storage": "8Mi"}}}})
            await here.until_phase("a", "Succeeded")
            assert holds(await here.layer("a"), 7) and holds(await here.layer("a"), 0, "7M")
            # exactly what was asked for, whatever the claim asks for
            assert io(await here.layer("a"), "length") == "8 MiB\n"
            await here.data_volume("small", {"source": {"http": {"url": url}}, "pvc": pvc("2Mi")})
            await here.until_phase("small", "Failed")
            assert "A larger PVC is required" in (await here.running_condition("small"))["message"]


@run_by(asyncio.run)
async def test_a_data_source_is_an_import(work: Path) -> None:
    server = Server()
    url = server.put("/a", disk(work))
    with running(server):
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
