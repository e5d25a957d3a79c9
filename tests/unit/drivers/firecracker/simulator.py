"""Plays `firecracker`: a process with the real one's arguments and socket, which refuses what the real one refuses.

It has no guest. The guest's part is that it hears Ctrl-Alt-Del, unless its machine's name ends in `-hang`, and that memory is a file of
the right size. FAULTS, a file beside the program, has what it does wrong: a JSON object of call ("PUT /actions") and effect (`refuse`,
`die`, `hang`, `die-after`). Calls are written to the file `calls` of its working directory.
"""

import http.server
import importlib.util
import json
import os
import re
import signal
import socket
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

VERSION = "1.10.1"
_ID = re.compile(r"[A-Za-z0-9_]{1,64}\Z")
_VMM_ID = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_MAC = re.compile(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\Z")


def load_facts(path: str) -> Any:
    """The driver's table of facts, without the driver."""
    spec = importlib.util.spec_from_file_location("apifacts", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Refusal(Exception):
    """A 400 of the real one."""


class Vmm:
    """The state of one VMM."""

    def __init__(self, id: str, facts: Any) -> None:
        self.id, self.facts = id, facts
        self.state = facts.NOT_STARTED
        self.fresh = True
        self.drives: dict[str, dict[str, Any]] = {}
        self.interfaces: dict[str, dict[str, Any]] = {}
        self.machine: dict[str, Any] = {"vcpu_count": 1, "mem_size_mib": 128, "smt": False, "track_dirty_pages": False}
        self.boot: dict[str, Any] | None = None
        self.balloon: dict[str, Any] | None = None
        self.mmds: Any = None
        self.mmds_config: dict[str, Any] | None = None
        self.metrics = False

    def call(self, method: str, path: str, body: Any) -> Any:
        """Carry out a call and return its answer."""
        known = self.facts.find(method, path)
        if known is None:
            raise Refusal(f"Invalid request method and/or path: {method} {path}.")
        call, identifier = known
        if identifier and _ID.match(identifier) is None:
            raise Refusal("Invalid API Resource ID")
        problem = self.facts.problem(call, identifier, body)
        if problem:
            raise Refusal(f"An error occurred when deserializing the json body of a request: {problem}.")
        self._check_state(call, body)
        name = f"{method.lower()}_{call[1].removesuffix('/{id}').strip('/').replace('/', '_').replace('-', '_') or 'instance'}"
        answer = getattr(self, name)(body)
        if method != "GET" and path not in ("/logger", "/metrics"):
            self.fresh = False
        return answer

    def _check_state(self, call: tuple[str, str], body: Any) -> None:
        states = self.facts.CALLS[call][0]
        if call[1] == "/actions":
            states = self.facts.BEFORE if body["action_type"] == "InstanceStart" else self.facts.AFTER
        if states is self.facts.FRESH:
            if not self.fresh or self.state != self.facts.NOT_STARTED:
                raise Refusal("Loading a microVM snapshot not allowed after configuring boot-specific resources.")
        elif self.state not in states:
            when = "before starting" if self.state == self.facts.NOT_STARTED else "after starting"
            if states is self.facts.STOPPED and self.state == self.facts.RUNNING:
                raise Refusal("Cannot save the Vm state: the microVM is not paused")
            raise Refusal(f"The requested operation is not supported {when} the microVM.")

    # --- reading ----------------------------------------------------------------------------------------------------------

    def get_instance(self, _: Any) -> Any:
        return {"app_name": "Firecracker", "id": self.id, "state": self.state, "vmm_version": VERSION}

    def get_version(self, _: Any) -> Any:
        return {"firecracker_version": VERSION}

    def get_machine_config(self, _: Any) -> Any:
        return self.machine

    def get_mmds(self, _: Any) -> Any:
        return self.mmds

    def get_balloon(self, _: Any) -> Any:
        if self.balloon is None:
            raise Refusal("Balloon device not configured.")
        return self.balloon

    def get_vm_config(self, _: Any) -> Any:
        return {
            "machine-config": self.machine,
            "boot-source": self.boot or {},
            "drives": list(self.drives.values()),
            "network-interfaces": list(self.interfaces.values()),
            "mmds-config": self.mmds_config,
            "balloon": self.balloon,
        }

    # --- before the start -------------------------------------------------------------------------------------------------

    def put_machine_config(self, body: Any) -> None:
        if body.get("smt") and body["vcpu_count"] > 1 and body["vcpu_count"] % 2:
            raise Refusal("The vCPU number is invalid!")
        self.machine = {**self.machine, **body}

    patch_machine_config = put_machine_config

    def put_boot_source(self, body: Any) -> None:
        for name in ("kernel_image_path", "initrd_path"):
            if name in body and not os.path.isfile(body[name]):
                raise Refusal("The kernel file cannot be opened: No such file or directory (os error 2)")
        self.boot = body

    def put_drives(self, body: Any) -> None:
        if "path_on_host" not in body or "is_read_only" not in body:
            raise Refusal("Unable to create the virtio block device: path_on_host or is_read_only is missing")
        if body["is_root_device"] and any(each["is_root_device"] for name, each in self.drives.items() if name != body["drive_id"]):
            raise Refusal("A root block device already exists!")
        self._open(body["path_on_host"], read_only=body["is_read_only"])
        self.drives[body["drive_id"]] = body

    def _open(self, path: str, *, read_only: bool) -> int:
        try:
            handle = os.open(path, os.O_RDONLY if read_only else os.O_RDWR)
        except OSError as error:
            raise Refusal(f"Unable to open the block device backing file: {error.strerror}") from error
        size = os.fstat(handle).st_size
        os.close(handle)
        return size

    def put_network_interfaces(self, body: Any) -> None:
        if "guest_mac" in body and _MAC.match(body["guest_mac"]) is None:
            raise Refusal("The MAC address is invalid.")
        if not body["host_dev_name"] or len(body["host_dev_name"]) > 15:
            raise Refusal("Cannot open the TAP: Invalid interface name")
        others = [each for name, each in self.interfaces.items() if name != body["iface_id"]]
        if any(each.get("guest_mac") == body.get("guest_mac") for each in others):
            raise Refusal("The MAC address is already in use")
        self.interfaces[body["iface_id"]] = body

    def put_balloon(self, body: Any) -> None:
        if body["amount_mib"] > self.machine["mem_size_mib"]:
            raise Refusal("Amount of pages requested cannot be larger than guest memory.")
        self.balloon = body

    def put_entropy(self, body: Any) -> None:
        pass

    put_serial = put_logger = put_entropy

    def put_metrics(self, body: Any) -> None:
        if self.metrics:
            raise Refusal("Reinitialization of metrics not allowed.")
        self.metrics = True

    def put_mmds_config(self, body: Any) -> None:
        if not body["network_interfaces"] or any(each not in self.interfaces for each in body["network_interfaces"]):
            raise Refusal(
                "The list of network interface IDs provided contains at least one ID that does not correspond to any existing one."
            )
        self.mmds_config = body

    def put_mmds(self, body: Any) -> None:
        if len(json.dumps(body)) > 51200:
            raise Refusal("The MMDS data store limit is exceeded")
        self.mmds = body

    def patch_mmds(self, body: Any) -> None:
        if self.mmds is None:
            raise Refusal("The MMDS data store is not initialized.")
        self.put_mmds({**self.mmds, **body})

    def put_vsock(self, body: Any) -> None:
        # The real one listens there at once.
        if os.path.exists(body["uds_path"]):
            raise Refusal("Error binding to the host-side Unix socket: Address in use")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(body["uds_path"])

    # --- running ----------------------------------------------------------------------------------------------------------

    def put_actions(self, body: Any) -> None:
        if body["action_type"] == "InstanceStart":
            if self.boot is None:
                raise Refusal("Cannot start microvm without kernel configuration.")
            self.state = self.facts.RUNNING
            sys.stdout.write(f"guest of {self.id} boots with {self.boot.get('boot_args', '')}\n")
            sys.stdout.flush()
        elif body["action_type"] == "SendCtrlAltDel" and not re.search(r"-hang-[0-9a-f]{12}\Z", self.id):
            threading.Timer(0.05, lambda: os._exit(0)).start()

    def patch_vm(self, body: Any) -> None:
        self.state = self.facts.PAUSED if body["state"] == "Paused" else self.facts.RUNNING

    def patch_drives(self, body: Any) -> None:
        drive = self.drives.get(body["drive_id"])
        if drive is None:
            raise Refusal("Invalid block device ID!")
        if "path_on_host" in body:
            self._open(body["path_on_host"], read_only=drive["is_read_only"])
        drive.update(body)

    def patch_network_interfaces(self, body: Any) -> None:
        if body["iface_id"] not in self.interfaces:
            raise Refusal("Invalid interface ID")
        self.interfaces[body["iface_id"]].update(body)

    def patch_balloon(self, body: Any) -> None:
        if self.balloon is None:
            raise Refusal("No balloon device found.")
        if body["amount_mib"] > self.machine["mem_size_mib"]:
            raise Refusal("Amount of pages requested cannot be larger than guest memory.")
        self.balloon["amount_mib"] = body["amount_mib"]

    # --- snapshots --------------------------------------------------------------------------------------------------------

    def put_snapshot_create(self, body: Any) -> None:
        state = {
            "machine": self.machine,
            "drives": self.drives,
            "interfaces": self.interfaces,
            "balloon": self.balloon,
            "mmds_config": self.mmds_config,
        }
        Path(body["snapshot_path"]).write_text(json.dumps(state))
        with open(body["mem_file_path"], "wb") as file:
            file.truncate(self.machine["mem_size_mib"] << 20)

    def put_snapshot_load(self, body: Any) -> None:
        if ("mem_backend" in body) == ("mem_file_path" in body):
            raise Refusal("Either mem_file_path or mem_backend has to be present.")
        memory = body["mem_backend"]["backend_path"] if "mem_backend" in body else body["mem_file_path"]
        try:
            state = json.loads(Path(body["snapshot_path"]).read_text())
            size = os.stat(memory).st_size
        except (OSError, ValueError) as error:
            raise Refusal(f"Failed to restore from snapshot: {error}") from error
        if size != state["machine"]["mem_size_mib"] << 20:
            raise Refusal("Failed to restore from snapshot: the memory file has another size")
        for drive in state["drives"].values():
            self._open(drive["path_on_host"], read_only=drive["is_read_only"])
        self.machine, self.drives, self.interfaces = state["machine"], state["drives"], state["interfaces"]
        self.balloon, self.mmds_config = state["balloon"], state["mmds_config"]
        self.state = self.facts.RUNNING if body.get("resume_vm") else self.facts.PAUSED


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    vmm: Vmm
    faults: Path
    lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.command == "GET" and content:
            return self._answer(400, {"fault_message": "GET request cannot have a body."})
        if len(content) > 51200:
            return self._answer(400, {"fault_message": "Request payload is too large."})
        effect = self._effect()
        if effect == "hang":
            time.sleep(3600)
        if effect == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        with self.server.lock, open("calls", "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {content.decode()[:4000]}\n")
            try:
                if effect == "refuse":
                    raise Refusal("The simulator was asked to refuse this.")
                answer = self.server.vmm.call(self.command, self.path, json.loads(content) if content else None)
            except Refusal as error:
                return self._answer(400, {"fault_message": str(error)})
            except ValueError:
                return self._answer(400, {"fault_message": "The body is no JSON."})
        if effect == "die-after":
            os.kill(os.getpid(), signal.SIGKILL)
        return self._answer(204 if answer is None else 200, answer)

    do_GET = do_PUT = do_PATCH = _serve

    def _effect(self) -> str:
        try:
            faults = json.loads(self.server.faults.read_text())
        except (OSError, ValueError):
            return ""
        call = f"{self.command} {self.path}"
        return str(faults.get(call, ""))

    def _answer(self, status: int, body: Any) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def address_string(self) -> str:
        return "api"

    def log_message(self, *_: Any) -> None:
        pass


def main(facts: str, faults: str, argv: list[str]) -> int:
    """Play the program."""
    if argv == ["--version"]:
        print(f"Firecracker v{VERSION}")
        return 0
    given = dict(zip(argv[::2], argv[1::2], strict=True))
    if not set(given) <= {"--id", "--api-sock"} or _VMM_ID.match(given.get("--id", "")) is None:
        print("invalid arguments", file=sys.stderr)
        return 152
    if os.path.exists(given["--api-sock"]):
        print("Failed to open the API socket: it exists already", file=sys.stderr)
        return 1
    if Path(faults).with_name("fail").exists():
        print("Error: RunWithApi(KVM: the simulator was asked to fail)", file=sys.stderr)
        return 1
    server = Server(given["--api-sock"], Handler)
    server.vmm, server.faults = Vmm(given["--id"], load_facts(facts)), Path(faults)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
