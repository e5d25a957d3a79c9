"""Calls on a simulator without a network, for its own tests: `api.post("/nodes/pve1/qemu", vmid=100)`."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from tests.kit.proxmox.simulator import BASE, Request, Response, Simulator


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, response: Response) -> None:
        content = json.loads(response.body) if response.body else {}
        self.status, self.reason = response.status, response.reason
        self.errors: dict[str, str] = content.get("errors", {})
        super().__init__(f"{self.status} {self.reason} {self.errors or ''}".strip())


class Api:
    """A caller with a token or ticket."""

    def __init__(self, simulator: Simulator, token: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.simulator = simulator
        self.headers = dict(headers or {})
        if token:
            self.headers["authorization"] = token

    def call(self, method: str, path: str, /, **values: Any) -> Any:
        """Return the data of an answer; raise `Refused`. Underscores at the end and double ones in names are for Python's sake."""
        given = {name.rstrip("_").replace("__", "-"): value for name, value in values.items()}
        body = urlencode(given, doseq=True, quote_via=quote).encode()
        target, headers = BASE + path, dict(self.headers)
        if method in ("POST", "PUT"):
            headers["content-type"] = "application/x-www-form-urlencoded"
        else:
            target, body = f"{target}?{body.decode()}" if body else target, b""
        response = self.simulator.handle(Request(method, target, headers, body))
        if response.status != 200:
            raise Refused(response)
        return response.data

    def get(self, path: str, /, **values: Any) -> Any:
        return self.call("GET", path, **values)

    def post(self, path: str, /, **values: Any) -> Any:
        return self.call("POST", path, **values)

    def put(self, path: str, /, **values: Any) -> Any:
        return self.call("PUT", path, **values)

    def delete(self, path: str, /, **values: Any) -> Any:
        return self.call("DELETE", path, **values)

    def done(self, upid: str) -> str:
        """Let a task finish and return its exit status."""
        self.simulator.settle()
        node = upid.split(":")[1]
        status = self.get(f"/nodes/{node}/tasks/{quote(upid, safe='')}/status")
        assert status["status"] == "stopped"
        return str(status["exitstatus"])

    def upload(self, path: str, content: str, name: str, data: bytes, **values: str) -> str:
        """Upload a file as a browser's form does."""
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
            for field, value in {"content": content, **values}.items()
        ]
        head = "".join(parts) + f'--x\r\nContent-Disposition: form-data; name="filename"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + b"\r\n--x--\r\n"
        headers = {**self.headers, "content-type": "multipart/form-data; boundary=x"}
        response = self.simulator.handle(Request("POST", BASE + path, headers, body))
        if response.status != 200:
            raise Refused(response)
        return str(response.data)
