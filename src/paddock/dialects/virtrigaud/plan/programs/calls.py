"""The limits of the calls to a provider, from its spec (docs/spec/virtrigaud.md 1.5)."""

from paddock.base import duration
from paddock.contract.client import RemoteSettings
from paddock.contract.pool import PoolSettings
from paddock.dialects.virtrigaud.kinds.provider import ConnectionPooling, Provider, RateLimit


def settings(provider: Provider, name: str) -> RemoteSettings:
    """Return the rate limit and the bounds of the connections of a Provider."""
    rate = provider.spec.rateLimit or RateLimit()
    pooling = provider.spec.connectionPooling or ConnectionPooling()
    pool = PoolSettings(
        connections=pooling.maxConnections,
        idle_connections=pooling.maxIdleConnections,
        connect_seconds=max(0.1, duration.parse(pooling.connectionTimeout) / duration.SECOND),
        idle_seconds=duration.parse(pooling.idleTimeout) / duration.SECOND,
    )
    return RemoteSettings(name, qps=float(rate.qps), burst=rate.burst, pool=pool)
