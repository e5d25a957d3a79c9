"""A case of the suite."""

from collections.abc import Awaitable, Callable

import msgspec

from paddock.contract.conformance.context import ConformanceContext


class ConformanceCase(msgspec.Struct, frozen=True, kw_only=True):
    """A demand of the contract."""

    name: str
    text: str
    run: Callable[[ConformanceContext], Awaitable[None]]
    # capabilities without which the case is skipped: members of GetCapabilitiesResponse
    needs: tuple[str, ...] = ()
    # features without which it is skipped (see `features`)
    features: tuple[str, ...] = ()
    # a provider may answer NotSupported; no capability stands for this operation
    optional: bool = False
