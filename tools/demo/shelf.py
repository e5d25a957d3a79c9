"""The web server on loopback that the guests' image comes from. `python -m tools.demo.shelf FOLDER PORT-FILE`."""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing of what it is asked."""

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


def main(folder: Path, port_file: Path) -> None:
    """Serve the files of a folder, at the port of the last time if it is free; the port is written down when it listens."""
    handler = partial(Quiet, directory=str(folder))
    wanted = int(port_file.read_text()) if port_file.exists() else 0
    try:
        server = ThreadingHTTPServer(("127.0.0.1", wanted), handler)
    except OSError:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    port_file.write_text(str(server.server_port))
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
