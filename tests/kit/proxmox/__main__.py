"""`python -m tests.kit.proxmox`: a simulated cluster on a loopback port, until it is interrupted."""

import argparse
import asyncio
from pathlib import Path

from tests.kit.proxmox.client import Api
from tests.kit.proxmox.server import ProxmoxServer
from tests.kit.proxmox.simulator import Simulator


async def _run(options: argparse.Namespace) -> None:
    simulator = Simulator(tuple(f"pve{number + 1}" for number in range(options.nodes)), speed=options.speed)
    if options.shared is not None:
        simulator.cluster.storages["shared"].directory = options.shared
    server = ProxmoxServer(simulator, tls=not options.plain, name=options.name)
    token = simulator.access.add_token("root@pam", "paddock", separated=False)
    api = Api(simulator, token)
    for number, name in enumerate(options.machine, 100):
        disk = {"scsi0": "local-lvm:4", "scsihw": "virtio-scsi-pci", "net0": "virtio,bridge=vmbr0"}
        api.done(api.post("/nodes/pve1/qemu", vmid=number, name=name, cores=2, memory=2048, **disk))
        api.done(api.post(f"/nodes/pve1/qemu/{number}/status/start"))
    await server.start(options.port)
    if options.ca is not None:
        options.ca.write_bytes(server.ca_pem)
    print(f"{server.url}\n{token}\nroot@pam {simulator.access.users['root@pam'].password}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kit.proxmox", description="Serve a simulated Proxmox VE cluster on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=1, help="1 to 3")
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster than the real one the cluster's clock runs")
    parser.add_argument("--plain", action="store_true", help="HTTP instead of HTTPS")
    parser.add_argument("--ca", type=Path, help="write the certificate authority here")
    parser.add_argument("--shared", type=Path, help="the directory that the storage 'shared' really is")
    parser.add_argument("--name", default="localhost", help="name of the server in its certificate and URL")
    parser.add_argument("--machine", metavar="NAME", action="append", default=[], help="a running machine, from VMID 100 on; repeatable")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
