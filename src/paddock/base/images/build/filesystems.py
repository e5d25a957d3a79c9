"""File systems in files, made without mounting anything. Equal content gives equal bytes."""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from paddock.base.images.build.programs import need, run

# 2020-01-01, in place of the time of the build.
_TIME = 1577836800
_UUID = "7a1d0c52-7f2e-4f0c-8d43-0f0f3c1b9a11"
TOOLS = {"mkfs.vfat": "dosfstools", "mcopy": "mtools", "mmd": "mtools", "mke2fs": "e2fsprogs"}


def fat(path: Path, size: int, label: str, files: Mapping[str, bytes], cluster: int = 0) -> None:
    """A FAT file system with these files; `cluster` is how many sectors one has, 0 leaves it to mkfs.vfat."""
    need(TOOLS, "make the file systems of an image")
    path.unlink(missing_ok=True)
    clusters = ["-s", str(cluster)] if cluster else []
    run(["mkfs.vfat", "--invariant", *clusters, "-n", label, "-C", path, str(size // 1024)])
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        folders = sorted({str(folder) for name in files for folder in PurePosixPath(name).parents if str(folder) != "."})
        for folder in folders:
            run(["mmd", "-i", path, f"::{folder}"], env={"SOURCE_DATE_EPOCH": str(_TIME)})
        for number, (name, data) in enumerate(files.items()):
            source = work / str(number)
            source.write_bytes(data)
            os.utime(source, (_TIME, _TIME))
            run(["mcopy", "-m", "-i", path, source, f"::{name}"], env={"TZ": "UTC", "MTOOLS_SKIP_CHECK": "1"})


def ext4(path: Path, size: int, label: str, source: Path | None = None) -> None:
    """An ext4 file system, empty or with what is in a directory (whose owners only root can carry over)."""
    need(TOOLS, "make the file systems of an image")
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    identity = ["-U", _UUID, "-E", f"hash_seed={_UUID},lazy_itable_init=0,lazy_journal_init=0", "-m", "0"]
    copied = ["-d", str(source)] if source else []
    run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", label, *identity, *copied, str(path)], env={"E2FSPROGS_FAKE_TIME": str(_TIME)})
