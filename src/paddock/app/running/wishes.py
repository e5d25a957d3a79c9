"""From the command line of `paddock run` to new machines: the image, names, sizes and keys are settled, then all is carried out."""

import argparse
import asyncio
import getpass
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from paddock.app.running import localimages, machines
from paddock.app.running.localimages import LocalImages, ProvidedImage
from paddock.app.running.machines import CreatedObject, NotUsable, Watch
from paddock.base import quantity
from paddock.base.errors import PaddockError, Terminal
from paddock.base.images import catalogue
from paddock.base.images.sources import library_url
from paddock.cli import servers
from paddock.cli.console import Console
from paddock.cli.progress import ProgressBar
from paddock.fleet.creation import imagewords, mounts, newmachine, readiness, takennames, userdata
from paddock.fleet.creation.imagewords import ImageWord
from paddock.fleet.creation.mounts import HostMount
from paddock.fleet.creation.newmachine import NewMachine
from paddock.fleet.creation.readiness import RunStage, Timings
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.target import Key

_DEFAULT_NAMESPACE = "default"
# The account in the guest of somebody who has no name on this host.
_NAMELESS = "user"
# server, namespace and name of the instance, and where remarks go
Attach = Callable[[Access, str, str, Console], Awaitable[None]]
_TINY_MEMORY, _MEMORY = "192Mi", "1Gi"


class RunPlan(msgspec.Struct, frozen=True):
    """The machines to make, and what the user should know."""

    machines: tuple[NewMachine, ...]
    remarks: tuple[str, ...] = ()


def offline(parsed: argparse.Namespace) -> RunPlan:
    """Return the plan without a server: for manifests that are only printed."""
    images = LocalImages(None)
    image = _image(parsed.image, images)
    if image.kind in ("library", "file"):
        remark = f"the address of {image.text} is good on this host once `paddock run` or `paddock image pull` put it into the library"
        return _plan(parsed, image, ProvidedImage(library_url(images.name_of(image))), (), remark)
    with ProgressBar(Console(), quiet=True) as bar:
        return _plan(parsed, image, images.provide(image, bar), ())


def _image(word: str, images: LocalImages) -> ImageWord:
    return imagewords.interpret(word, images.names(), catalogue.KNOWN, lambda path: Path(path).is_file())


def _plan(parsed: argparse.Namespace, image: ImageWord, address: ProvidedImage, taken: Collection[str], *remarks: str) -> RunPlan:
    if parsed.name:
        names = imagewords.several(parsed.name, parsed.count)
    else:
        names = imagewords.unused_series(imagewords.base_name(image), parsed.count, taken)
    shared = tuple(mounts.on_this_host(mounts.read(each)) for each in parsed.mount)
    user_data, about_guest = _user_data(parsed, shared)
    size = localimages.disk_size(1 if image.text == localimages.TINY else address.size)
    one = NewMachine(
        name="",
        namespace=parsed.namespace or _DEFAULT_NAMESPACE,
        dialect=parsed.dialect,
        image=image,
        address=address.address,
        cpus=parsed.cpus,
        memory=parsed.memory or (_TINY_MEMORY if image.text == localimages.TINY else _MEMORY),
        disk=parsed.disk or size,
        user_data=user_data,
        ports=tuple(newmachine.port(each) for each in parsed.publish),
        mounts=shared,
    )
    return RunPlan(tuple(msgspec.structs.replace(one, name=name) for name in names), (*remarks, *about_guest))


def in_cluster(plan: RunPlan, image_size: int) -> RunPlan:
    """Return the plan for a cluster, where a claim has to take the image of a DataSource. No disk is made smaller than that claim."""
    size = localimages.disk_size(image_size)

    def placed(wish: NewMachine) -> NewMachine:
        return msgspec.structs.replace(wish, image_claim=min(size, wish.disk, key=quantity.whole))

    return msgspec.structs.replace(plan, machines=tuple(map(placed, plan.machines)))


def _user_data(parsed: argparse.Namespace, shared: Sequence[HostMount]) -> tuple[str, tuple[str, ...]]:
    """Return cloud-init's document, and remarks if nobody can log in by SSH, or the guest has to mount a directory itself."""
    if parsed.user_data:
        if parsed.key:
            raise Terminal("--user-data and --key exclude each other", fix="put the key into the user data: ssh_authorized_keys")
        given = _read(Path(parsed.user_data))
        ways = (f"mount -t virtiofs {mounts.tag(index)} {each.guest}" for index, each in enumerate(shared))
        return given, tuple(f"your user data has to mount the directory in the guest: {each}" for each in ways)
    keys = [userdata.public_key(_read(each), str(each)) for each in localimages.keys(parsed.key)]
    document = userdata.document(keys, _user(), mounts=mounts.entries(shared))
    if keys:
        return document, ()
    return document, ("no SSH key in ~/.ssh: make one with ssh-keygen, or name it with -k; `paddock exec` and `paddock console` need none",)


def _user() -> str:
    """Return the name of the user; programs may run under a number that has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return _NAMELESS


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Terminal(f"cannot read {path}", why=getattr(error, "strerror", None) or str(error)) from error


async def carry_out(parsed: argparse.Namespace, console: Console, attach: Attach) -> bool:
    """Make the machines and wait for them; return whether all are usable. `attach` shows a console on the terminal."""
    timings = Timings(time.monotonic())
    if parsed.rm:
        servers.end_as_by_interrupt()
    with ProgressBar(console, quiet=parsed.quiet) as bar:
        async with servers.connected(parsed, console) as session:
            parsed.namespace = session.namespace
            return await _Run(parsed, console, session, bar, attach).carry_out(timings)


class _Run:
    """One call of the command."""

    def __init__(self, parsed: argparse.Namespace, console: Console, session: ServerSession, bar: ProgressBar, attach: Attach) -> None:
        self._parsed = parsed
        self._console = console
        self._client = session.client
        self._access = session.access
        self._bar = bar
        self._attach = attach
        self._made: list[CreatedObject] = []

    async def carry_out(self, timings: Timings) -> bool:
        parsed = self._parsed
        directory = localimages.directory_of(self._access.server, parsed.kubeconfig)
        if parsed.mount and directory is None:
            why = "the server is on another host, or its directory is not known"
            raise Terminal("cannot share directories of this host with the guest", why=why, fix="copy files with `paddock cp`")
        images = LocalImages(directory)
        image = _image(parsed.image, images)
        address = await asyncio.to_thread(images.provide, image, self._bar)
        taken = () if parsed.name else await takennames.of(self._client, parsed.namespace)
        plan = _plan(parsed, image, address, taken)
        if not await self._client.is_paddock():
            plan = in_cluster(plan, address.size)
        for remark in plan.remarks:
            self._say(remark)
        try:
            await self._create(newmachine.manifests(plan.machines))
            if not parsed.wait:
                self._console.out("".join(f"{each.name}\n" for each in plan.machines))
                return True
            return await self._use(plan.machines, timings)
        finally:
            if parsed.rm:
                self._bar.show(f"deleting {', '.join(each.name for each in plan.machines)} and its disk")
                await machines.delete(self._client, self._made)

    async def _create(self, documents: Sequence[dict[str, Any]]) -> None:
        """Make the objects; when one is refused, none stays."""
        try:
            await machines.create(self._client, documents, self._made)
        except PaddockError:
            if not self._parsed.rm:
                await machines.delete(self._client, self._made)
            raise

    async def _use(self, wishes: Sequence[NewMachine], timings: Timings) -> bool:
        # Of several machines, the first one's phases are shown: the others wait for their turn to boot.
        keys = [Key(each.namespace, each.name) for each in wishes]
        watches = [Watch(self._client, self._access, key, timings if key == keys[0] else Timings(time.monotonic())) for key in keys]
        shown = _Shown(self._bar, len(wishes))
        waits = (each.until_usable(self._parsed.timeout, shown.of(wish.name)) for each, wish in zip(watches, wishes, strict=True))
        results = await asyncio.gather(*waits, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, NotUsable):
                raise result
        for wish, watch, result in zip(wishes, watches, results, strict=True):
            if isinstance(result, NotUsable):
                await self._explain(result)
            else:
                balancer = await machines.balancer(self._client, watch.key) if wish.ports else ""
                self._bar.pause()
                lines = [wish.name] if self._parsed.quiet else _report(wish, watch, balancer)
                self._console.out("".join(f"{line}\n" for line in lines))
        if self._parsed.timings:
            self._console.out("".join(f"{line}\n" for line in timings.lines()))
        self._console.flush()
        if self._parsed.rm and not isinstance(results[0], BaseException):
            await self._attend(wishes[0], watches[0])
        return not any(isinstance(each, NotUsable) for each in results)

    async def _explain(self, error: NotUsable) -> None:
        self._bar.say(f"paddock: {error}")
        try:
            for line in await machines.why(self._client, error.place):
                self._bar.say(line)
        except PaddockError as refused:
            self._bar.say(f"paddock: {refused}")

    async def _attend(self, wish: NewMachine, watch: Watch) -> None:
        """Show the console on a terminal until it is left; elsewhere wait until the guest ends."""
        self._bar.pause()
        if os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno()):
            await self._attach(self._access, wish.namespace, wish.name, self._console)
            return
        await watch.until_over()

    def _say(self, text: str) -> None:
        if not self._parsed.quiet:
            self._bar.say(f"paddock: {text}")


class _Shown:
    """Shows one machine, or how many of several are usable."""

    def __init__(self, bar: ProgressBar, count: int) -> None:
        self._bar = bar
        self._count = count
        self._standings: dict[str, RunStage] = {}

    def of(self, name: str) -> Callable[[RunStage], None]:
        def show(standing: RunStage) -> None:
            self._standings[name] = standing
            if self._count == 1:
                self._tell(f"{name}: {standing.text}", standing.fraction)
                return
            usable = sum(each.phase == "usable" for each in self._standings.values())
            self._tell(f"{usable} of {self._count} machines are usable", None)

        return show

    def _tell(self, text: str, fraction: float | None) -> None:
        if fraction is None:
            self._bar.show(text)
        else:
            self._bar.show(text, fraction, 1.0, in_bytes=False)


def _has_login(wish: NewMachine) -> bool:
    """Return whether somebody may log in by SSH: the document of a machine that only mounts has no key."""
    return bool(wish.user_data) and not (wish.mounts and "ssh_authorized_keys" not in wish.user_data)


def _report(wish: NewMachine, watch: Watch, balancer: str) -> list[str]:
    """Return how to get in. The ways that this guest has come first."""
    agent = readiness.agent_connected(watch.seen.vmi)
    address = readiness.address(watch.seen.vmi)
    prefix = "" if wish.namespace == _DEFAULT_NAMESPACE else f" -n {wish.namespace}"
    rows = [(f"paddock ssh {wish.name}{prefix}", "a shell, by SSH")] if _has_login(wish) else []
    rows += [(f"paddock exec {wish.name}{prefix} -- COMMAND", "a command, by the guest agent")] if agent else []
    rows += [(f"paddock console {wish.name}{prefix}", "the serial console")]
    rows += [
        (f"{balancer}:{each.host}" if balancer else f"port {each.host}", f"port {each.guest} of the guest, {each.protocol}")
        for each in wish.ports
    ]
    rows += [(each.guest, f"{each.host} of this host{', read-only' if each.readonly else ''}") for each in wish.mounts]
    width = max(len(way) for way, _ in rows)
    head = f"{wish.name} is usable" + (f", at {address}" if address else "") + f" ({wish.cpus} CPU, {wish.memory})"
    return [head, *(f"  {way:<{width}}  {text}" for way, text in rows)]
