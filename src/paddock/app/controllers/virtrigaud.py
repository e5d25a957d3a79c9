"""VirtRigaud's controllers on the embedded server.

A Provider of type qemu is this server: its machines are KubeVirt's, in the Provider's own namespace, so whoever may make a Provider gets no
machines that he could not make himself. For other types there is no driver here, and their conditions say so.
"""

from collections.abc import Callable

from paddock.client.client import Client
from paddock.client.target import Key
from paddock.controllers.virtrigaud import controller
from paddock.controllers.virtrigaud.registry import ProviderConnection, absent
from paddock.drivers.kubevirt.driver import KubeVirtDriver
from paddock.drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock.plan.virtrigaud.health import ProviderRuntimeFacts
from paddock.runtime.controller import Controller
from paddock.runtime.program import ControllerManager

OWN_TYPE = "qemu"


class OwnServerProviders:
    """The drivers of Providers on a server: those of type qemu keep their machines on it."""

    def __init__(self, client: Client, address: Callable[[], str]) -> None:
        self._client = client
        self._address = address
        self._drivers: dict[Key, KubeVirtDriver] = {}

    def find(self, key: Key, type: str) -> ProviderConnection:
        """The connection to a Provider of a type."""
        if type != OWN_TYPE:
            return ProviderConnection(None, absent(type))
        driver = self._drivers.get(key)
        if driver is None:
            settings = KubeVirtDriverSettings(namespace=key.namespace, server=self._address())
            driver = self._drivers[key] = KubeVirtDriver(self._client, settings)
        message = f"the machines are KubeVirt's, in the namespace {key.namespace} of this server"
        return ProviderConnection(driver, ProviderRuntimeFacts(message=message, endpoint=self._address()))

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Nothing changes while the server runs."""


def wire(program: ControllerManager, address: Callable[[], str]) -> Controller:
    """Add the controllers to the program of an embedded server."""
    return controller.wire(program, OwnServerProviders(program.client, address))
