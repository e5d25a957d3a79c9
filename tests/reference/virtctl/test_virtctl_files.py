"""Disks and memory that leave the host: vmexport and memory-dump through the real virtctl.

virtctl 1.0 asks for exports of v1alpha1 and knows no raw download; the newest asks for v1.
"""

import gzip
import tarfile
import time
from pathlib import Path

import pytest

from tests.reference.client import Api
from tests.reference.virtctl.conftest import CLAIMS, Guests, Virtctl, claim, named, until

EXPORTS = "/apis/export.kubevirt.io/v1beta1/namespaces/default/virtualmachineexports"
BLANK = b"\0" * (16 << 20)


@pytest.mark.spec("kubevirt", 48)
def test_a_disk_is_downloaded_and_the_export_deleted(virtctl: Virtctl, api: Api, tmp_path: Path) -> None:
    name = named("out", virtctl)
    claim(api, name, "16Mi")
    virtctl.ok("vmexport", "create", name, f"--pvc={name}")
    assert api.request("GET", f"{EXPORTS}/{name}").ok
    raw, packed = tmp_path / "disk.img", tmp_path / "disk.img.gz"
    where = ("--insecure", "--keep-vme", f"--volume={name}")
    if virtctl.release != "1.0":
        virtctl.ok("vmexport", "download", name, f"--output={raw}", "--format=raw", *where, seconds=120)
        assert raw.read_bytes() == BLANK
    virtctl.ok("vmexport", "download", name, f"--output={packed}", *where, seconds=120)
    assert gzip.decompress(packed.read_bytes()) == BLANK
    virtctl.ok("vmexport", "delete", name)
    until("it is gone", lambda: not api.request("GET", f"{EXPORTS}/{name}").ok)


@pytest.mark.spec("kubevirt", 48)
def test_memory_is_dumped_twice_downloaded_and_let_go(virtctl: Virtctl, guests: Guests, api: Api, tiny: str, tmp_path: Path) -> None:
    guests.until_up(tiny)
    name = named("memory", virtctl)

    def request() -> dict[str, str]:
        return dict(guests.vm(tiny)["status"].get("memoryDumpRequest") or {})

    def dumped() -> bool:
        assert request().get("phase") != "Failed", request()
        return request().get("phase") == "Completed"

    virtctl.ok("memory-dump", "get", tiny, "--create-claim", f"--claim-name={name}", seconds=120)
    until("the memory is written", dumped, 120)
    first = request()["fileName"]
    # Names of dumps have seconds in them.
    time.sleep(1.1)
    virtctl.ok("memory-dump", "get", tiny, seconds=120)
    until("it is written again", lambda: dumped() and request()["fileName"] != first, 120)
    packed = tmp_path / "dump.tar.gz"
    virtctl.ok("memory-dump", "download", tiny, f"--output={packed}", seconds=300)
    with tarfile.open(packed) as archive:
        (file,) = [each for each in archive.getmembers() if each.isfile()]
        content = archive.extractfile(file)
        assert file.name.endswith(request()["fileName"]) and content is not None and content.read(4) == b"\x7fELF"
        assert file.size > 100 << 20, "all of the guest's memory"
    virtctl.ok("memory-dump", "remove", tiny)
    until("the machine has let go of it", lambda: not request(), 60)
    assert name not in [each["name"] for each in guests.vm(tiny)["spec"]["template"]["spec"]["volumes"]]
    api.request("DELETE", f"{CLAIMS}/{name}")
