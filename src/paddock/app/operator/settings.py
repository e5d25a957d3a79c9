"""Settings of an operator, fixed at its start."""

from pathlib import Path

import msgspec

from paddock.dialects.fronts import FrontSettings


class ListenAddress(msgspec.Struct, frozen=True):
    """The address of a listener; an empty host is every address of the machine."""

    host: str
    port: int


class MetricsSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics over TLS, for clients with a token whose user may read them."""

    # the folder of the certificate and its key; None: the operator makes a certificate of its own
    folder: Path | None = None
    certificate: str = "tls.crt"
    key: str = "tls.key"


class LeaderElectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The leader election of replicas."""

    wanted: bool = True
    # A dialect's lease has its name appended: operators exclude each other in the dialects that they share.
    name: str = "paddock-operator"
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


class OperatorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one start."""

    # None: KUBECONFIG, else the Pod's own way in
    kubeconfig: Path | None = None
    context: str = ""
    # the kubeconfig of the API that has the front objects, when it is not the same
    front: Path | None = None
    fronts: FrontSettings = FrontSettings(embedded=False)
    # None: not served
    metrics: ListenAddress | None = ListenAddress("", 8080)
    health: ListenAddress | None = ListenAddress("", 8081)
    # None: the metrics are plain HTTP for everybody
    security: MetricsSecurity | None = None
    lease: LeaderElectionSettings = LeaderElectionSettings()
    # the operator's own, where the leases are; empty: that of the way in
    namespace: str = ""
    log_format: str = "json"
    log_level: str = "info"
