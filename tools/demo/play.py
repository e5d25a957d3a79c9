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
from tools.demo.sight import Guest, Line, Seen

_SECONDS = float(os.environ.get("PADDOCK_DEMO_SECONDS", "600"))
_LOOK_SECONDS = 0.5
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
    stage.prepare(place, sight.DIALECTS, screen.say)
    screen.say(f"starting {len(sight.GUESTS)} guests with objects of {len(sight.DIALECTS)} dialects: {place.examples}")
    lines, ready = asyncio.run(_watch(place, sight.GUESTS, screen))
    good = all(line.answers for line in lines)
    table = sight.table(sight.rows(lines, ready))
    if good:
        table += ["", f"{len(lines)} guests of {len(sight.DIALECTS)} dialects run and answer after {screen.seconds:.0f} s."]
    else:
        table += ["", f"Not all guests answer after {_SECONDS:g} s. The server's log: {place.root}/server.log", "Ask:", ""]
        table += [f"  {_PADDOCK} why vm/{line.guest.name}" for line in lines if not line.answers]
    screen.settle(["", *table])
    print(_next(place, lines) if stays else "\nThe web console and its session end with the demonstration, which takes itself away now.")
    return 0 if good else 1


async def _watch(place: Place, guests: Sequence[Guest], screen: Screen) -> tuple[list[Line], dict[Guest, float]]:
    """Apply everything, and show what becomes of it until all guests answer; the lines, and when each guest answered first."""
    ready: dict[Guest, float] = {}
    async with objects.connected(place.host.kubeconfig) as client:
        screen.draw(_progress(sight.lines(guests, Seen()), ready, screen))
        await objects.apply(client, objects.documents(place.examples))
        names = {each: f"{each.dialect:<10}  {each.name}" for each in guests}
        width = max(map(len, names.values()))
        end = time.monotonic() + _SECONDS
        while True:
            lines = sight.lines(guests, await objects.look(client))
            for line in lines:
                if line.answers:
                    ready.setdefault(line.guest, screen.seconds)
            screen.tell([(names[line.guest].ljust(width), line.text) for line in lines])
            screen.draw(_progress(lines, ready, screen))
            if time.monotonic() > end or (all(line.answers for line in lines) and await _all_serve(lines)):
                return lines, ready
            await asyncio.sleep(_LOOK_SECONDS)


def _progress(lines: Sequence[Line], ready: dict[Guest, float], screen: Screen) -> list[str]:
    """The table while guests start, with the time below it."""
    answering = sum(line.answers for line in lines)
    return ["", *sight.table(sight.rows(lines, ready)), "", f"{answering} of {len(lines)} guests answer after {screen.seconds:.0f} s"]


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
    said = ["", "Everything stays until `make demo-down`, the web console, too. Try:", "", f"  export KUBECONFIG={place.host.kubeconfig}"]
    if shutil.which("kubectl"):
        said += [
            "  kubectl get vm,vmi,dv         # the machines of all dialects, and their disks",
            "  kubectl get machines          # Vitistack's own kind",
            "  kubectl scale vmpool kubermatic-pool --replicas 3",
        ]
    else:
        said.append("  (kubectl is not installed here; any version since 1.27 works)")
    said.append(f"  {_PADDOCK} console kubevirt-vm    # a root shell; ctrl+] leaves")
    # The first guest has the key; Kubermatic's have no cloud-init.
    for line in [line for line in lines[:1] if line.answers]:
        said.append(f"  {_PADDOCK} ssh -i {place.key} root@{line.guest.name}")
        # In user mode, a port of a guest is reached at an address of loopback.
        port = f":{_LOW_PORTS + 80}" if line.address.startswith("127.") else ""
        said.append(f"  curl http://{line.address}{port}/")
    said += [
        f"  {_PADDOCK} why vm/kubevirt-vm",
        f"  {_PADDOCK} ui    # another link to a web console, until ctrl+c",
        "",
        f"The manifests are in {place.examples}:",
        "change one and apply it, or run `make demo` again.",
    ]
    return "\n".join(said)
