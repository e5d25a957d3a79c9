"""`virtctl image-upload`, the real one, against a whole server. Skipped until `make test-reference` has built virtctl."""

import asyncio
import gzip
import lzma
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from paddock.app.uploads.tokens import TokenClaims, UploadTokens
from tests.coroutines import run_by
from tests.host.storage.conftest import MB, Site, disk, holds, pvc, site
from tests.host.storage.test_uploads import send, token
from tests.reference import recipes
from tests.reference.build import cache_root

pytestmark = pytest.mark.needs("qemu")


@pytest.fixture(params=[pytest.param(release, marks=pytest.mark.spec("kubevirt", 51)) for release in recipes.VIRTCTLS])
def virtctl(request: pytest.FixtureRequest) -> Path:
    recipe = recipes.VIRTCTLS[request.param]
    found = cache_root() / recipe.name / recipe.key / "virtctl"
    if not found.exists():
        pytest.skip("needs virtctl: it has not been built: `make test-reference` does it")
    return found


async def run(program: Path, here: Site, *words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        program, "image-upload", *words, f"--kubeconfig={here.root}/kubeconfig", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode()


@pytest.mark.spec("kubevirt", 46)
@run_by(asyncio.run)
async def test_images_are_uploaded(work: Path, virtctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, qcow2 = disk(work, form="raw"), disk(work)
    bodies = {"raw": raw, "qcow2": qcow2, "gz": gzip.compress(raw), "xz": lzma.compress(raw)}
    for form, body in bodies.items():
        (work / f"disk.{form}").write_bytes(body)
    expired = Expired(monkeypatch)
    async with site(work / "root") as here:
        upload = partial(run, virtctl, here)
        for kind in ("dv", "pvc"):
            for form in bodies:
                name = f"{kind}-{form}"
                await succeeds(upload, kind, name, "--size=16Mi", f"--image-path={work}/disk.{form}", "--insecure")
                assert holds(await here.layer(name), 7)
        code, text = await upload("dv", "dv-raw", "--no-create", f"--image-path={work}/disk.raw", "--insecure")
        assert code != 0 and "already successfully imported" in text
        # a claim that is there already; an upload into it broke off before, and the time of its first token is over
        await here.data_volume("waiting", {"source": {"upload": {}}, "pvc": pvc("64Mi")})
        await here.until_phase("waiting", "UploadReady")
        await broken(here, work)
        expired.tokens = 1
        code, text = await upload("dv", "waiting", "--no-create", f"--image-path={work}/disk.qcow2", "--insecure")
        assert code != 0 and "make another UploadTokenRequest" in text
        await succeeds(upload, "dv", "waiting", "--no-create", f"--image-path={work}/disk.qcow2", "--insecure")
        assert holds(await here.layer("waiting"), 7) and expired.refused > 1


async def succeeds(upload: Callable[..., object], *words: str) -> None:
    code, text = await upload(*words)  # type: ignore[misc]
    assert code == 0, text


async def broken(here: Site, work: Path) -> None:
    """Half of an upload, and then nobody is there any more."""
    status, _ = await send(here, "POST /v1beta1/upload", (work / "disk.raw").read_bytes(), await token(here, "waiting"), stop_after=2 * MB)
    assert status == 0
    await asyncio.sleep(0.5)
    assert (await here.status("waiting"))["phase"] == "UploadReady"


class Expired:
    """The first so many tokens that come are as if their time was over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens = 0
        self.refused = 0
        self._old: set[str] = set()
        read = UploadTokens.read

        def late(tokens: UploadTokens, token: str, now: float) -> TokenClaims | None:
            if self.tokens > 0 and token not in self._old:
                self.tokens -= 1
                self._old.add(token)
            if token in self._old:
                self.refused += 1
                return None
            return read(tokens, token, now)

        monkeypatch.setattr(UploadTokens, "read", late)
