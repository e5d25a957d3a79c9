"""Small appliances for tests, and a server that has them."""

import hashlib
import http.server
import io
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DESCRIPTOR = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
  xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData">
  <References><File ovf:id="file1" ovf:href="tiny-disk1.vmdk" ovf:size="{size}"/></References>
  <DiskSection><Info>disks</Info><Disk ovf:diskId="vmdisk1" ovf:fileRef="file1" ovf:capacity="{capacity}" ovf:capacityAllocationUnits="byte"
    ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/></DiskSection>
  <NetworkSection><Info>networks</Info><Network ovf:name="lan"><Description>lan</Description></Network></NetworkSection>
  <VirtualSystem ovf:id="tiny"><Info>a machine</Info><Name>tiny</Name>
    <OperatingSystemSection ovf:id="101"><Info>guest</Info></OperatingSystemSection>
    <VirtualHardwareSection><Info>hardware</Info>
      <System><vssd:ElementName>x</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID>
        <vssd:VirtualSystemType>vmx-13</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>cpu</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType>
        <rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
      <Item><rasd:ElementName>memory</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType>
        <rasd:VirtualQuantity>256</rasd:VirtualQuantity></Item>
      <Item><rasd:ElementName>scsi</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType>
        <rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>disk</rasd:ElementName>
        <rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>4</rasd:InstanceID><rasd:Parent>3</rasd:Parent>
        <rasd:ResourceType>17</rasd:ResourceType></Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
"""
CAPACITY = 8 << 20


def packed_disk(folder: Path, content: bytes = b"tiny" * 1000) -> bytes:
    """Return a packed VMDK with this content; some bytes where there is no program to make one."""
    raw, made = folder / "disk.raw", folder / "disk.vmdk"
    raw.write_bytes(content + bytes(CAPACITY - len(content)))
    if shutil.which("qemu-img") is None:
        return b"KDMV" + content
    words = ("-f", "raw", "-O", "vmdk", "-o", "subformat=streamOptimized")
    subprocess.run(["qemu-img", "convert", *words, raw, made], check=True, timeout=60)
    return made.read_bytes()


def appliance(path: Path, *, spoilt: bool = False) -> bytes:
    """Write an appliance with one disk, and return the disk. One that is spoilt has another disk than its manifest says."""
    disk = packed_disk(path.parent)
    text = DESCRIPTOR.format(size=len(disk), capacity=CAPACITY).encode()
    wrong = b"x" if spoilt else b""
    sums = f"SHA256(tiny.ovf)= {hashlib.sha256(text).hexdigest()}\nSHA256(tiny-disk1.vmdk)= {hashlib.sha256(disk + wrong).hexdigest()}\n"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in (("tiny.ovf", text), ("tiny.mf", sums.encode()), ("tiny-disk1.vmdk", disk)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return disk


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server with the files of a folder."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(folder))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
