"""Settings of the controllers of Vitistack's kinds. The operator reads them from the seven variables of its environment."""

import msgspec


class VitistackSettings(msgspec.Struct, frozen=True, kw_only=True):
    # RECONCILE_INTERVAL: every machine and network is reconciled again this often
    resync_seconds: float = 30.0
    # MAX_CONCURRENT_RECONCILES
    workers: int = 5
    # MAC_SET: the second octet of addresses that are made up
    mac_set: str = "12"
    # VITISTACK_POWER_FIELD: `running`, or `runStrategy`
    power_field: str = "running"
    # so many failed starts in a row are enough
    start_failure_limit: int = 5
