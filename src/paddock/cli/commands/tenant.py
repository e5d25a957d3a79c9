"""`paddock tenant`: makes a tenant. `tenant ls` and `tenant rm` stand below it."""

import argparse
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from paddock.base.names import check_name
from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.fleet.documents import report
from paddock.fleet.tenants import tenancy
from paddock.fleet.tenants.tenant import TenantShares

_TEXT = """Make a tenant: a namespace, a user with the rights to its machines, a quota, and a network policy that keeps machines of other
namespaces out. Write the kubeconfig of the user to a file. Repeat the command to change the quota; everything else stays."""
# verb -> its module and its summary
COMMANDS = {
    "ls": ("paddock.cli.commands.tenant_list", "List the tenants with what they use"),
    "rm": ("paddock.cli.commands.tenant_remove", "Delete a tenant with everything that it has"),
}
_ALIASES = {"list": "ls", "remove": "rm", "delete": "rm"}
_PRIVATE = 0o600


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("tenant", _TEXT, "[OPTIONS] NAME")
    options.add_argument("name", metavar="NAME", help="Name of the tenant, and of its namespace")
    options.add_argument("--cpu", metavar="N", default="4", help="Processors of running machines, in all (default: 4)")
    options.add_argument("--memory", metavar="SIZE", default="8Gi", help="Memory of running machines, in all (default: 8Gi)")
    options.add_argument("--storage", metavar="SIZE", default="100Gi", help="Size of disks, in all (default: 100Gi)")
    options.add_argument("--machines", metavar="N", default="20", help="Number of machines, running or not (default: 20)")
    text = "Share in the processors of a busy host, from 1 to 10000, beside other namespaces (default: 100)"
    options.add_argument("--cpu-shares", metavar="N", default="", help=text)
    text = "File of the kubeconfig (default: NAME.kubeconfig)"
    options.add_argument("--to", dest="file", metavar="FILE", type=Path, default=None, help=text)
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Make a tenant, or run one of the verbs."""
    verb = _ALIASES.get(argv[0], argv[0]) if argv else ""
    if verb in COMMANDS:
        code: int = import_module(COMMANDS[verb][0]).run(list(argv[1:]), console)
        return code
    parsed = parser().parse_args(argv)
    return servers.serve(_make(parsed, console))


async def _make(parsed: argparse.Namespace, console: Console) -> int:
    check_name(parsed.name)
    shares = TenantShares(parsed.cpu, parsed.memory, parsed.storage, parsed.machines, parsed.cpu_shares)
    async with servers.connected(parsed, console) as session:
        for what, word in await tenancy.make(session, parsed.name, shares, dry_run=parsed.dry_run):
            console.out(f"{what} {word}{' (--dry-run)' if parsed.dry_run else ''}\n")
        if parsed.dry_run:
            return GOOD
        document = await tenancy.kubeconfig(session, parsed.name)
    file = parsed.file or Path(f"{parsed.name}.kubeconfig")
    _write(file, report.structured(document, "yaml"))
    console.out(f"wrote {file}; its user works with: KUBECONFIG={file} paddock ls\n")
    return GOOD


def _write(file: Path, text: str) -> None:
    """Write a file that only its owner reads; whole, or not at all."""
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w") as stream:
        stream.write(text)
    part.replace(file)
