"""Settings of Kubermatic's dialect controllers, fixed when a program starts."""

import msgspec


class KubermaticSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the dialect controllers."""

    # value of the label app.kubernetes.io/managed-by
    product: str = "paddock"
    # objects of a kind that are reconciled at a time
    workers: int = 5
    # every object is reconciled again this often: the net below lost events
    resync_seconds: float = 30.0
