"""A web server with ranges on loopback that gives each connection so many bytes a second.

`python -m tools.bench.pacedserver DIRECTORY RATE` prints its port and serves until it is ended.
"""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_PIECE = 64 * 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.server.folder / Path(self.path).name
        size = path.stat().st_size
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = (int(found[1]), int(found[2]) + 1 if found[2] else size) if found else (0, size)
        self.send_response(206 if found else 200)
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{size}"', "Content-Length": str(end - start)}
        if found:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self._send(path, start, end)

    def _send(self, path: Path, start: int, end: int) -> None:
        began = time.monotonic()
        with open(path, "rb") as file:
            file.seek(start)
            for at in range(start, end, _PIECE):
                self.wfile.write(file.read(min(_PIECE, end - at)))
                ahead = (at + _PIECE - start) / self.server.rate - (time.monotonic() - began)
                if ahead > 0:
                    time.sleep(ahead)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, rate: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.rate = folder, rate


@contextlib.contextmanager
def running(folder: Path, rate: int) -> Iterator[str]:
    """The address of such a server in a process of its own."""
    command = [sys.executable, "-m", "tools.bench.pacedserver", str(folder), str(rate)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    served = _Server(Path(sys.argv[1]), int(sys.argv[2]))
    print(served.server_address[1], flush=True)
    served.serve_forever()
