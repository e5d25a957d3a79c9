"""Facts about the server that the controllers beside it need."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from paddock.app.options.settings import MachineSettings, ProviderProgramSettings


class ControllerEnvironment(msgspec.Struct, frozen=True):
    """One server, as its controllers see it."""

    # where the engine keeps everything
    directory: Path
    machines: MachineSettings
    # the networks of Services, one for each family, with a comma
    services: str
    # name of the Node
    node: str
    # PEM of the server's authority
    authority: bytes
    # the address of the API, which is known when it listens
    address: Callable[[], str]
    # names inside end with it
    domain: str = "cluster.local"
    # names of all Nodes, where there are several
    nodes: tuple[str, ...] = ()
    providers: ProviderProgramSettings = msgspec.field(default_factory=ProviderProgramSettings)
