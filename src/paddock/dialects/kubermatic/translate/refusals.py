"""The reasons why a machine cannot be made for a cluster yet, or at all.

`error_type` is the reason of the condition DataSourceResolved (docs/spec/kubermatic.md section 3); `path` is the place in the
object that was translated. An object that may appear later is `Transient`, a mistake that somebody has to correct first is `Terminal`.
"""

from paddock.base.errors import Terminal, Transient
from paddock.kubernetes.schema.finding import Path


class DataSourceNotFound(Transient):
    """Nobody has made the DataSource yet."""

    error_type = "DataSourceNotFound"

    def __init__(self, path: Path, kind: str, name: str) -> None:
        super().__init__(f"the {kind} {name} is not there", fix="create it, or add it to the input; the machine waits for it")
        self.path = path
        self.name = name


class DataSourceNotReady(Transient):
    """The DataSource is there and something it needs is not. `reason` is that of its own condition Ready."""

    error_type = "DataSourceNotReady"

    def __init__(self, path: Path, name: str, reason: str, why: str) -> None:
        super().__init__(f"the DataSource {name} cannot be used ({reason})", why=why)
        self.path = path
        self.name = name
        self.reason = reason


class CrossNamespaceSecret(Terminal):
    """A DataSource that needs a Secret is for its own namespace only."""

    error_type = "CrossNamespaceSecret"

    def __init__(self, path: Path, name: str, namespace: str) -> None:
        fix = f"use a DataSource of the namespace {namespace}"
        super().__init__(f"the DataSource {name} cannot be used from the namespace {namespace}", why="it needs a Secret", fix=fix)
        self.path = path
        self.name = name


class ClientCertificateUnsupported(Terminal):
    """CDI cannot present a client certificate."""

    error_type = "ClientCertificateUnsupported"

    def __init__(self, path: Path, name: str) -> None:
        fix = "leave certConfig.cert and certConfig.key out; Paddock's own engine presents them"
        super().__init__(f"{name} asks for a client certificate", why="CDI cannot present one", fix=fix)
        self.path = path
        self.name = name


REFUSALS = (DataSourceNotFound, DataSourceNotReady, CrossNamespaceSecret, ClientCertificateUnsupported)
