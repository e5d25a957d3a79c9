"""From the first line to the table, and to the end of it all."""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence

from paddock.base.errors import PaddockError
from tools.demo import ending, objects, sight, stage
from tools.demo.place import Place
from tools.demo.screen import Screen
from tools.demo.sight import Guest, Line

_SECONDS = float(os.environ.get("PADDOCK_DEMO_SECONDS", "600"))
_LOOK_SECONDS = 0.25
_WEB_SECONDS = 2.0
# In user mode a low port of a guest is that much higher, at its own address of loopback.
_LOW_PORTS = 64512
_PADDOCK = ".venv/bin/paddock"


class Ended(Exception):
    """A signal said that it is enough."""


def main() -> int:
    """`up` or `down`."""
    place = Place.default()
    if sys.argv[1:] == ["down"]:
        ending.end(place)
        print("demo: nothing of it is left")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    stays = sys.stdout.isatty() or os.environ.get("PADDOCK_DEMO_KEEP") == "yes"
    try:
        return _up(place, Screen(sys.stdout), stays=stays)
    except (Ended, KeyboardInterrupt):
        print("\ndemo: cleaning up, a moment", flush=True)
        stays = False
        return 130
    except PaddockError as error:
        print(f"demo: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        if not stays:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            ending.end(place)
            print("demo: nothing of it is left")


def _stop(number: int, frame: object) -> None:
    raise Ended


def _up(place: Place, screen: Screen, *, stays: bool) -> int:
    began = time.monotonic()
    stage.prepare(place, sight.DIALECTS, screen.say)
    lines = asyncio.run(_watch(place, sight.GUESTS, screen))
    good = all(line.answers for line in lines)
    rows = [("DIALECT", "OBJECT", "MACHINE", "STATE", "ADDRESS", "GUEST")]
    rows += [(each.guest.dialect, each.guest.front, each.guest.name, each.state, each.address, each.system) for each in lines]
    print(f"\n{sight.table(rows)}\n")
    if good:
        print(f"{len(lines)} guests run and answer, after {time.monotonic() - began:.0f} s.")
    else:
        print(f"Not all guests answer after {_SECONDS:g} s. The server's log: {place.root}/server.log\nAsk:")
        print("".join(f"  {_PADDOCK} why vm/{line.guest.name}\n" for line in lines if not line.answers))
    if stays:
        print(_next(place, lines))
    return 0 if good else 1


async def _watch(place: Place, guests: Sequence[Guest], screen: Screen) -> list[Line]:
    """Apply everything, and show what becomes of it until all guests answer."""
    async with objects.connected(place.host.kubeconfig) as client:
        await objects.apply(client, objects.documents(place.examples))
        names = {each: f"{each.dialect:<10}  {each.name}" for each in guests}
        width = max(map(len, names.values()))
        heading = ("DIALECT     MACHINE".ljust(width), "STATE")
        end = time.monotonic() + _SECONDS
        while True:
            lines = sight.lines(guests, await objects.look(client))
            screen.show([(names[line.guest].ljust(width), line.text) for line in lines], heading)
            if all(line.answers for line in lines) and await _all_serve(lines):
                screen.settle()
                return lines
            if time.monotonic() > end:
                screen.settle()
                return lines
            await asyncio.sleep(_LOOK_SECONDS)


async def _all_serve(lines: Sequence[Line]) -> bool:
    """Each guest has a web server. In user mode its port is open only where it is listed; the agent's word is taken there."""
    return all(await asyncio.gather(*(_serves(line.address) for line in lines if not line.address.startswith("127."))))


async def _serves(address: str) -> bool:
    try:
        async with asyncio.timeout(_WEB_SECONDS):
            reader, writer = await asyncio.open_connection(address, 80)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            said = await reader.read(100)
            writer.close()
    except (OSError, TimeoutError):
        return False
    return said.startswith(b"HTTP/")


def _next(place: Place, lines: Sequence[Line]) -> str:
    """Return the next commands to try, with the programs that are here."""
    answering = [line for line in lines if line.answers]
    said = ["", "It stays until `make demo-down`. Try:", "", f"  export KUBECONFIG={place.host.kubeconfig}"]
    if shutil.which("kubectl"):
        said += [
            "  kubectl get vm,vmi,dv",
            "  kubectl get vmpool,machines,virtualmachines.infrastructure.stakater.com,virtualmachines.infra.virtrigaud.io",
            "  kubectl scale vmpool kubermatic-pool --replicas 3",
        ]
    else:
        said.append("  (kubectl is not installed here; any version since 1.27 works with this server)")
    said += [f"  {_PADDOCK} console kubevirt-vm    # a root shell; ctrl+] leaves", f"  {_PADDOCK} why vm/kubevirt-vm"]
    for line in answering[:1]:
        user_mode = line.address.startswith("127.")
        port, web = (f"-p {_LOW_PORTS + 22} ", f":{_LOW_PORTS + 80}") if user_mode else ("", "")
        options = f"-i {place.key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        said += [f"  ssh {port}{options} root@{line.address}", f"  curl http://{line.address}{web}/"]
    said += ["", f"The manifests are in {place.examples}: change one, and apply it, or run `make demo` again."]
    return "\n".join(said)
