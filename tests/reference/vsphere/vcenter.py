"""VMware's simulator of vCenter, as the tests start and command it, and the driver's parts on it."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyVmomi import vim

from paddock.base.clock import Clock, SystemClock
from paddock.contract.factory import DriverContext
from paddock_drivers.vsphere import settings
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.session import VSphereConnection

USER, PASSWORD = "root", "secret"


class Simulator:
    """A running simulator."""

    def __init__(self, process: "subprocess.Popen[str]", credentials: Path, *, carrying: bool) -> None:
        self._process = process
        # clones have their identity from their first moment
        self.carrying = carrying
        self.credentials = credentials
        serving = self._heard()
        assert serving["event"] == "serving"
        self.url = str(serving["url"])
        self.authority = str(serving["authority"])
        write_credentials(credentials, PASSWORD, self.authority)
        self._connections: list[VSphereConnection] = []

    def tell(self, **command: Any) -> dict[str, Any]:
        """Give a command (see `programs/vsphere/main.go`), and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._heard()
        assert answer["event"] != "failed", answer
        return answer

    def calls(self) -> dict[str, int]:
        """Return how often each method was called since the last time."""
        return dict(self.tell(calls=True)["methods"])

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the variables of a provider's program for it."""
        return {"PROVIDER_TYPE": "vsphere", "PROVIDER_ENDPOINT": self.url, **variables}

    def context(self, clock: Clock | None = None, **variables: str) -> DriverContext:
        """Return what a driver is made with."""
        return DriverContext(clock=clock or SystemClock(), environment=self.environment(**variables), credentials=self.credentials)

    def connection(self, credentials: Path | None = None, **variables: str) -> VSphereConnection:
        """Return a connection of its own, which ends with the simulator."""
        made = VSphereConnection(settings.of_environment(self.environment(**variables)), credentials or self.credentials)
        self._connections.append(made)
        return made

    def stop(self) -> None:
        """End it as a crash does; the connections stay as they are."""
        self.close()
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the connections."""
        for each in self._connections:
            each.close()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def write_credentials(folder: Path, password: str, authority: str = "", username: str = USER) -> None:
    """Write the files of a Provider's credentials."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "username").write_text(username)
    (folder / "password").write_text(password)
    if authority:
        (folder / "ca.crt").write_text(authority)


@contextmanager
def running(program: Path, directory: Path, model: Mapping[str, Any] | None = None) -> Iterator[Simulator]:
    """A simulator for the length of a `with` block; its log is in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "vcsim.log").open("w") as log:
        # Its datastores are directories in TMPDIR.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", program, json.dumps(dict(model or {}))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={"TMPDIR": str(directory)},
        )
        try:
            simulator = Simulator(process, directory / "credentials", carrying=bool((model or {}).get("carrying")))
            yield simulator
            simulator.close()
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def template(simulator: Simulator, machine: str, name: str) -> Any:
    """Make a template of one of the simulator's machines."""
    ref = VSphereInventory(simulator.connection()).named(vim.VirtualMachine, machine).ref
    if ref.runtime.powerState != "poweredOff":
        finished(ref.PowerOffVM_Task())
    finished(ref.Rename_Task(name))
    # Exports carry every byte.
    shrunk(ref)
    ref.MarkAsTemplate()
    return ref


def shrunk(ref: Any, mib: int = 16) -> None:
    """Give a machine that is off a small disk in place of its own."""
    device = vim.vm.device
    (old,) = [each for each in ref.config.hardware.device if isinstance(each, device.VirtualDisk)]
    backing = device.VirtualDisk.FlatVer2BackingInfo(fileName="", diskMode="persistent", thinProvisioned=True)
    new = device.VirtualDisk(key=-1, controllerKey=old.controllerKey, unitNumber=old.unitNumber, backing=backing, capacityInKB=mib * 1024)
    for operation, file, each in (("remove", "destroy", old), ("add", "create", new)):
        change = device.VirtualDeviceSpec(operation=operation, fileOperation=file, device=each)
        finished(ref.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change])))


def finished(task: Any) -> Any:
    """Wait for a task of vSphere, and return its result."""
    end = time.monotonic() + 20
    while task.info.state in ("queued", "running"):
        assert time.monotonic() < end, "the task does not end"
        time.sleep(0.02)
    assert task.info.state == "success", task.info.error
    return task.info.result
