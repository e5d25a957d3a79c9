"""`paddock move`: takes machines with their disks from one server to another."""

import argparse
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from paddock.base.errors import PaddockError, UsageError
from paddock.base.lines import one_line
from paddock.base.names import check_name
from paddock.cli import arguments, confirming, progress, servers
from paddock.cli.arguments import KnownNames, Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.machines.finding import MachineView, every, find
from paddock.fleet.machines.waiting import NotReached
from paddock.fleet.moves import moverlease, preflight, sides, undoing
from paddock.fleet.moves.mover import CannotMove, MachineMover, MoveOptions
from paddock.fleet.moves.moverlease import MoverLease
from paddock.fleet.moves.plan import record
from paddock.fleet.moves.preflight import MovePreflight
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.moves.undoing import MoveUndoer
from paddock.kubevirt.disklinks import HttpLinkChannel

_TEXT = """Move machines with their disks to another server: host to host, host to cluster, and back. The command carries the disks
itself, so the servers need not reach each other. The plan comes first: what the target lacks, and what will differ. A machine is off
while its disks are carried. The source stays, fenced, until --delete-source. Run the same command again to continue an interrupted move."""
_HINT = "nothing is lost: run the same command again to go on, or take the move back with --undo"
_EXITS = {
    0: "done",
    1: "no answer or no --yes, or a machine was not there in time",
    2: "failure, a plan that has obstacles, or wrong usage",
}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("move", _TEXT, "[OPTIONS] --to SERVER [KIND/]NAME...", _EXITS)
    named = options.add_argument("names", metavar="[KIND/]NAME", nargs="*", help=arguments.MACHINES_TEXT)
    arguments.complete_with(named, KnownNames.MACHINES)
    arguments.add_selector(options)
    named = options.add_argument("--to", metavar="SERVER", default="", help="Target: a context, a kubeconfig or the directory of a server")
    arguments.complete_with(named, KnownNames.CONTEXTS)
    options.add_argument("--to-namespace", metavar="NAME", default="", help="Namespace at the target (default: the one of the machine)")
    options.add_argument("--storage-class", metavar="NAME", default="", help="Storage class of the disks there (default: the target's)")
    options.add_argument("--verify", action="store_true", help="Read each disk back from the target, and compare checksums")
    options.add_argument("--drop-state", action="store_true", help="Leave a persistent TPM and EFI variables behind")
    options.add_argument("--replace", action="store_true", help="Delete the source of an earlier move that the target still has")
    options.add_argument("--undo", action="store_true", help="Take a move back: delete what was made at the target, release the source")
    options.add_argument("--delete-source", action="store_true", help="Delete the source of a confirmed move, with its disks")
    arguments.add_yes(options)
    arguments.add_dry_run(options)
    arguments.add_quiet(options)
    arguments.add_timeout(options, 600, "Longest time to wait for a machine to stop, or to run")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    _check(options, parsed)
    return servers.serve(_run(parsed, console))


def _check(options: Parser, parsed: argparse.Namespace) -> None:
    if not parsed.to:
        options.error("name the target with --to")
    if bool(parsed.names) == bool(parsed.selector):
        options.error("name machines, or select them with -l")
    if parsed.undo and parsed.delete_source:
        options.error("--undo and --delete-source exclude each other")
    for name in parsed.names:
        check_name(name.rpartition("/")[2])


async def _run(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console, role="the source") as session:
        source = await sides.side(session, session.namespace)
        if parsed.selector:
            machines = await every(session.client, session.namespace, parsed.selector)
        else:
            machines = [await find(session.client, name, session.namespace) for name in dict.fromkeys(parsed.names)]
        if not machines:
            raise UsageError(
                f"no machine of namespace {session.namespace} fits {parsed.selector}", fix="`paddock ls --show-labels` lists them"
            )
        async with sides.opened(parsed.to, parsed.to_namespace or session.namespace) as target:
            return await _Moves(parsed, console, source, target).run(machines)


class _Moves:
    """The machines of one command, one after another."""

    def __init__(self, parsed: argparse.Namespace, console: Console, source: MoveSide, target: MoveSide) -> None:
        self._parsed = parsed
        self._console = console
        self._source = source
        self._target = target

    async def run(self, machines: Sequence[MachineView]) -> int:
        if self._parsed.undo:
            # The first machine of a move made what it shares with later ones.
            return await self._ended(machines[::-1], "Undo the move? What the guest wrote at the target is lost.", self._undo)
        if self._parsed.delete_source:
            return await self._ended(machines, "Delete the source with its disks?", self._delete_source)
        return await self._move(machines)

    async def _ended(self, machines: Sequence[MachineView], question: str, work: Callable[[MachineView], Awaitable[str]]) -> int:
        if self._parsed.dry_run:
            for machine in machines:
                self._console.out(f"{machine}: {question.partition('?')[0].lower()} (dry run); nothing was changed\n")
            return GOOD
        if not confirming.agreed(self._console, question, yes=self._parsed.yes):
            confirming.refused(self._console, "nothing was changed", "add --yes")
            return FINDINGS
        return await self._each(machines, work)

    async def _move(self, machines: Sequence[MachineView]) -> int:
        options = self._options()
        plans = [await MovePreflight(self._source, self._at(machine), options).plan(machine) for machine in machines]
        for line in (line for each in plans for line in each.lines()):
            self._console.say(one_line(line))
        if any(each.obstacles for each in plans):
            self._console.say("paddock: nothing was changed; mend what the lines with `cannot` name")
            return UNUSABLE
        if self._parsed.dry_run:
            self._console.say("paddock: nothing was changed (--dry-run)")
            return GOOD
        resumes = all(each.resumes for each in plans)
        if not resumes and not confirming.agreed(self._console, "Move?", yes=self._parsed.yes):
            confirming.refused(self._console, "nothing was changed", "add --yes")
            return FINDINGS
        return await self._each(machines, self._carry_out)

    def _options(self) -> MoveOptions:
        given = self._parsed
        return MoveOptions(
            storage_class=given.storage_class,
            verify=given.verify,
            drop_state=given.drop_state,
            replace=given.replace,
            seconds=given.timeout,
        )

    def _at(self, machine: MachineView) -> MoveSide:
        """The target with its namespace: that of a move that has begun, unless another one is named."""
        moved = record.read(machine.data)
        if moved is None or self._parsed.to_namespace:
            return self._target
        return msgspec.structs.replace(self._target, namespace=moved.namespace)

    async def _each(self, machines: Sequence[MachineView], work: Callable[[MachineView], Awaitable[str]]) -> int:
        """Do the work for each machine. The first that fails ends the command: the others have not begun."""
        for machine in machines:
            try:
                self._console.out(f"{machine} {await work(machine)}\n")
            except NotReached as error:
                self._console.say(f"paddock: {error}")
                self._console.say(f"paddock: {_HINT}")
                return FINDINGS
            except PaddockError as error:
                self._console.say(f"paddock: {machine}: {error}")
                if not isinstance(error, CannotMove):
                    self._console.say(f"paddock: {_HINT}")
                return UNUSABLE
        return GOOD

    async def _carry_out(self, machine: MachineView) -> str:
        target = self._at(machine)
        with progress.ProgressBar(self._console, quiet=self._parsed.quiet) as bar:

            def tell(line: str) -> None:
                if not self._parsed.quiet:
                    bar.say(f"paddock: {one_line(line)}")

            def show(label: str, done: float, total: float | None) -> None:
                bar.show(label, done=done, total=total)

            async with MoverLease(self._source, machine, moverlease.own_identity()).held():
                if self._parsed.replace and (earlier := await preflight.earlier_source(target, machine)) is not None:
                    await undoing.remove(target, earlier, tell)
                mover = MachineMover((self._source, target), HttpLinkChannel(), self._options(), tell, show)
                return await mover.move(machine)

    async def _undo(self, machine: MachineView) -> str:
        return await MoveUndoer(self._source, self._at(machine), self._parsed.timeout, self._tell).undo(machine)

    async def _delete_source(self, machine: MachineView) -> str:
        return await undoing.delete_source(self._source, self._at(machine), machine, self._tell)

    def _tell(self, line: str) -> None:
        if not self._parsed.quiet:
            self._console.say(f"paddock: {one_line(line)}")
