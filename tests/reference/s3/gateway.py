"""A real S3 server over a directory (versitygw), as the tests start it: a bucket is a directory below it, and an object a file."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddock.base.clock import SystemClock
from paddock.kubernetes.client.presigned import S3Keys
from paddock.kubernetes.client.s3 import PART, S3Object, S3Place

KEY, SECRET, REGION, BUCKET = "AKIDOFATEST", "the+secret/of/a+test", "eu-central-1", "exports"
_STARTS_SECONDS = 20.0


class Gateway:
    """A running server with one bucket."""

    def __init__(self, address: str, folder: Path, log: Path) -> None:
        self.endpoint = f"http://{address}"
        self.folder = folder
        self._log = log

    @property
    def log(self) -> str:
        """The lines that the server has written."""
        return self._log.read_text()

    def objects(self) -> list[str]:
        """The names of the objects in the bucket."""
        place = self.folder / BUCKET
        files = [each.relative_to(place) for each in place.rglob("*") if each.is_file()]
        return sorted(str(each) for each in files if not each.parts[0].startswith("."))

    def unfinished(self) -> list[Path]:
        """What uploads that never ended have left."""
        return [each for each in (self.folder / BUCKET / ".sgwtmp").rglob("*") if each.is_file()]

    def place(self, name: str) -> S3Place:
        """The address of an object."""
        return S3Place(bucket=BUCKET, name=name, endpoint=self.endpoint, region=REGION, path_style=True)

    def object(self, name: str, *, secret: str = SECRET, part: int = PART) -> S3Object:
        """An object in the bucket."""
        return S3Object(self.place(name), S3Keys(key=KEY, secret=secret, region=REGION), SystemClock(), part=part)


@contextmanager
def serving(program: Path, directory: Path, host: str = "127.0.0.1") -> Iterator[Gateway]:
    """A server for the length of a `with` block."""
    folder = directory / "buckets"
    (folder / BUCKET).mkdir(parents=True)
    with socket.socket() as found:
        found.bind((host, 0))
        address = f"{host}:{found.getsockname()[1]}"
    environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    command = [program, "--port", address, "--region", REGION, "posix", folder]
    with (directory / "gateway.log").open("w") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            gateway = Gateway(address, folder, directory / "gateway.log")
            _await(gateway, process)
            yield gateway
        finally:
            process.kill()
            process.wait()


def _await(gateway: Gateway, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _STARTS_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(gateway.endpoint, timeout=2)
        except urllib.error.HTTPError:
            # Without a signature it refuses, so it serves.
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the S3 server does not serve: {gateway.log}")
