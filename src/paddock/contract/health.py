"""gRPC's health service, as far as a provider has it."""

from typing import Annotated

from paddock.contract.messages import WireField, WireMessage
from paddock.contract.methods import RpcMethod

SERVING, NOT_SERVING = 1, 2


class HealthCheckRequest(WireMessage):
    """The request of gRPC's health service."""

    service: Annotated[str, WireField(1)] = ""


class HealthCheckResponse(WireMessage):
    """The answer of gRPC's health service."""

    status: Annotated[int, WireField(1, bits=32)] = 0


CHECK = RpcMethod("Check", HealthCheckRequest, HealthCheckResponse, 10, "grpc.health.v1.Health")
