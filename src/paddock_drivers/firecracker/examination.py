"""Findings about a host, for somebody who sets it up."""

import asyncio
import os
from pathlib import Path

from paddock.contract.examination import ProviderFinding
from paddock_drivers.firecracker import files
from paddock_drivers.firecracker.host import HypervisorFacts
from paddock_drivers.firecracker.settings import KERNEL, FirecrackerSettings

_GIB = 1 << 30


async def examine(settings: FirecrackerSettings, host: HypervisorFacts) -> tuple[ProviderFinding, ...]:
    """Return findings about the program, the jail, kernels, networks and room."""
    version = ".".join(map(str, await host.version()))
    free, total = await asyncio.to_thread(files.free, settings.directory)
    return (
        ProviderFinding(check="program", text=f"Firecracker {version} at {settings.program}"),
        _jail(settings),
        _kernel(settings),
        _networks(settings),
        ProviderFinding(check="storage", text=f"{settings.directory}: {free / _GIB:.1f} of {total / _GIB:.1f} GiB free"),
    )


def _jail(settings: FirecrackerSettings) -> ProviderFinding:
    if settings.jailer and settings.users:
        return ProviderFinding(check="jail", text=f"each machine runs in a jail, as a user of {settings.users[0]} to {settings.users[-1]}")
    if settings.users:
        text = "there is no program jailer; each machine runs as a user of its own, without a jail"
        return ProviderFinding(check="jail", grade="warning", text=text, fix="install the jailer of the same release")
    return ProviderFinding(check="jail", grade="warning", text="all machines run as the user of the provider", fix="run it as root")


def _kernel(settings: FirecrackerSettings) -> ProviderFinding:
    kernels = settings.directory / "kernels"
    own = settings.kernel if settings.kernel.startswith("/") or not settings.kernel else str(kernels / settings.kernel)
    if own and not Path(own).is_file():
        return ProviderFinding(check="kernel", grade="bad", text=f"{KERNEL} names {own}, which is no file", fix="put a vmlinux there")
    names = sorted(each.name for each in kernels.iterdir()) if kernels.is_dir() else []
    if not own and not names:
        text = "there is no kernel, so only images that bring their own can start"
        return ProviderFinding(check="kernel", grade="warning", text=text, fix=f"put a vmlinux into {kernels} and name it in {KERNEL}")
    return ProviderFinding(check="kernel", text=f"{own or 'no default'}; in the directory: {', '.join(names) or 'none'}")


def _networks(settings: FirecrackerSettings) -> ProviderFinding:
    bridges = sorted(each.parent.name for each in Path("/sys/class/net").glob("*/bridge"))
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK) or os.geteuid():
        text = "the provider cannot make network interfaces, so machines have none"
        return ProviderFinding(check="networks", grade="warning", text=text, fix="run it as root")
    missing = [each for each in settings.networks.values() if each not in bridges]
    if missing:
        return ProviderFinding(check="networks", grade="bad", text=f"there is no bridge {', '.join(missing)}", fix="make it")
    return ProviderFinding(check="networks", text=f"the bridges are {', '.join(bridges) or 'none'}")
