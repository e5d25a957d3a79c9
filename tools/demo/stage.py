"""The preparation before anything is applied: an image, its web server, a key, the control plane with its web console. Finished steps
are quick."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import Template

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from paddock.app.directory import process
from paddock.base.errors import PaddockError, Terminal
from paddock.base.images.build import places, tiny
from paddock.engine.networks.taps import read_setting
from tools.demo.place import SERVER, SHELF, Place

EXAMPLES = Path(__file__).parent / "examples"
_IMAGE = "tiny.qcow2"
_READY_SECONDS = 90.0
Say = Callable[[str], None]


def prepare(place: Place, dialects: tuple[str, ...], say: Say) -> None:
    """Everything, in order."""
    place.prepare()
    # It starts while the image is made.
    server = _launch(place)
    _image(place, say)
    _key(place)
    _shelf(place)
    _await(place, server, say)
    _write_examples(place, dialects)
    _console(place, server, say)


def _write_examples(place: Place, dialects: tuple[str, ...]) -> None:
    url = f"http://127.0.0.1:{place.port.read_text()}/{_IMAGE}"
    sha256 = hashlib.sha256((place.images / _IMAGE).read_bytes()).hexdigest()
    words = {"url": url, "sha256": sha256, "key": place.key.with_suffix(".pub").read_text().strip()}
    for dialect in dialects:
        file = place.examples / f"{dialect}.yaml"
        # What somebody changed to try it is applied as it is now.
        if not file.exists() or url not in file.read_text():
            file.write_text(Template((EXAMPLES / file.name).read_text()).substitute(words))


def _image(place: Place, say: Say) -> None:
    """The small guest, from Debian packages; builds are cached, so that this takes time only once."""
    image = place.images / _IMAGE
    if image.exists():
        return
    if built := tiny.newest(places.cache()):
        # Asking apt whether its packages are still the newest takes seconds.
        shutil.copyfile(built, image)
        return
    say("making a small guest from Debian packages: paddock image build tiny")
    work = place.root / "build"
    # In a session of its own, so that what it runs can be ended with it.
    build = subprocess.Popen(
        [sys.executable, "-m", "paddock.app", "image", "build", "tiny", "--output", work],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        _, said = build.communicate()
    except BaseException:
        os.killpg(build.pid, signal.SIGKILL)
        build.wait()
        raise
    if build.returncode:
        raise PaddockError("cannot make the guest's image", why=said.decode(errors="replace").strip().removeprefix("paddock: "))
    (work / _IMAGE).replace(image)
    shutil.rmtree(work)
    say(f"made a guest of {image.stat().st_size >> 20} MiB")


def _key(place: Place) -> None:
    """A key for this demonstration alone."""
    if place.key.with_suffix(".pub").exists():
        return
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    place.key.touch(mode=0o600)
    place.key.write_bytes(private)
    place.key.with_suffix(".pub").write_text(f"{public.decode()} paddock-demo\n")


def _shelf(place: Place) -> None:
    if place.find(SHELF) is not None:
        return
    before = place.port.stat().st_mtime_ns if place.port.exists() else 0
    child = place.launch(SHELF, ["tools.demo.shelf", place.images, place.port])
    _until(lambda: place.port.exists() and place.port.stat().st_mtime_ns != before and place.port.read_text() != "", child, place, SHELF)


def _launch(place: Place) -> "tuple[subprocess.Popen[bytes], float] | None":
    """Start the control plane unless it runs; return its process and the time."""
    if process.find(place.host) is not None:
        return None
    network = os.environ.get("PADDOCK_DEMO_NETWORK") or ("user" if read_setting("ipv4/conf/all/rp_filter") == "1" else "auto")
    # Root's guests pass through it, as users of their own.
    place.host.root.mkdir(mode=0o711, exist_ok=True)
    options = ["--listen", "127.0.0.1:0", "--ui", "127.0.0.1:0", "--image-from", "127.0.0.1", "--network", network]
    began = time.monotonic()
    return place.launch(SERVER, ["paddock.app", "up", "--dir", place.host.root, *options]), began


def _await(place: Place, server: "tuple[subprocess.Popen[bytes], float] | None", say: Say) -> None:
    if server is None:
        return
    child, began = server
    _until(lambda: (found := process.find(place.host)) is not None and found.pid == child.pid, child, place, SERVER)
    say(f"the control plane is ready after {time.monotonic() - began:.1f} s: {place.host.root}")


def _console(place: Place, server: "tuple[subprocess.Popen[bytes], float] | None", say: Say) -> None:
    """Say how to open the web console: with the link of a new server, which works once, or with a new link."""
    if server is not None:
        _until(lambda: _link(place) != "", server[0], place, SERVER)
        say("the web console shows the machines come up; this link opens one session, within ten minutes:")
        say(_link(place))
    elif link := _link(place):
        say(f"the web console still serves at {link.partition('login/')[0]}; `paddock ui` prints a link for another session")


def _link(place: Place) -> str:
    found = process.find(place.host)
    return "" if found is None else found.console


def _until(holds: Callable[[], bool], child: "subprocess.Popen[bytes]", place: Place, name: str) -> None:
    end = time.monotonic() + _READY_SECONDS
    while not holds():
        if child.poll() is not None:
            raise Terminal(f"the {name} did not start", why=place.last_words(name))
        if time.monotonic() > end:
            raise Terminal(f"the {name} is not ready after {_READY_SECONDS:g} s", why=place.last_words(name))
        time.sleep(0.02)
