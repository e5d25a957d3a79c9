"""Workloads in the binary form of kubectl."""

import asyncio

from tests.coroutines import run_by
from tests.unit.server.builtin.test_workloads import APPS, SHOWN, Workloads


@run_by(asyncio.run)
async def test_a_message_in_protobuf_is_that_of_the_table() -> None:
    async with Workloads() as api:
        container = _field(1, b"a") + _field(2, b"nginx") + _field(6, b"\x18\x50")
        labels = _field(11, _field(1, b"a") + _field(2, b"b"))
        template = _field(1, labels) + _field(2, _field(2, container))
        spec = b"\x08\x00" + _field(2, _field(1, _field(1, b"a") + _field(2, b"b"))) + _field(3, template)
        body = _field(1, _field(1, b"x")) + _field(2, spec)
        frame = b"k8s\0" + _field(1, _field(1, b"apps/v1") + _field(2, b"Deployment")) + _field(2, body)
        made = await api.post(f"{APPS}/deployments", frame, content_type="application/vnd.kubernetes.protobuf")
        assert made.status == 201, made.data
        ports = [{"containerPort": 80, "protocol": "TCP"}]
        assert made.data["spec"]["template"]["spec"]["containers"] == [{**SHOWN, "ports": ports}]
        assert made.data["spec"]["replicas"] == 0


def _field(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data
