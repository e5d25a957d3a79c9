"""What an ingress controller does for KubeVirt's exports: it ends TLS for a name of its own, and passes the rest to virt-exportproxy.

The name is in no name service: the command gets a proxy that knows it, as in many companies.
"""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from paddock.server.security.pki import Authority
from tests.reference.cluster import control, forward
from tests.reference.cluster.conftest import Cluster
from tests.reference.cluster.kubevirt import NAMESPACE

HOST = "exports.example.test"
_NAME, _PROXY = "exports", "virt-exportproxy"
_CHUNK = 1 << 16


@contextlib.contextmanager
def exports(cluster: Cluster, directory: Path) -> Iterator[str]:
    """An Ingress for exports; yields the address of the proxy that leads to it."""
    authority = Authority(directory)
    certificate, key = authority.server([HOST])
    # KubeVirt shows clients the certificates of this Secret, so the authority has to be among them.
    chain = certificate.read_text() + authority.certificate.decode()
    control.apply(cluster.machine, _secret(chain, key.read_text()), _ingress())
    address = cluster.kubectl.ok("get", "service", "-n", NAMESPACE, _PROXY, "-o", "jsonpath={.spec.clusterIP}")
    port = forward.open_port(cluster.machine, address, 443)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(_listen(context, port), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        cluster.kubectl.ok("delete", f"ingress/{_NAME}", f"secret/{_NAME}", "-n", NAMESPACE)


def _secret(chain: str, key: str) -> dict[str, object]:
    data = {"tls.crt": chain, "tls.key": key}
    metadata = {"name": _NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "stringData": data}


def _ingress() -> dict[str, object]:
    backend = {"service": {"name": _PROXY, "port": {"number": 443}}}
    rule = {"host": HOST, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    spec = {"tls": [{"hosts": [HOST], "secretName": _NAME}], "rules": [rule]}
    metadata = {"name": _NAME, "namespace": NAMESPACE}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


async def _listen(context: ssl.SSLContext, port: int) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(f"CONNECT {HOST}:443 ".encode()), head
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.start_tls(context)
            # virt-exportproxy has a certificate of KubeVirt's own.
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            inner, outer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            await asyncio.gather(_copy(reader, outer), _copy(inner, writer))
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _end(server: asyncio.Server) -> None:
    server.close()
    open_ones = asyncio.all_tasks() - {asyncio.current_task()}
    for each in open_ones:
        each.cancel()
    await asyncio.gather(*open_ones, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
