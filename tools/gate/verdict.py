"""Decides what a run that left tests out is worth: red, unless the record proves each of them on the code that there is."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tools.gate.record import Proof, Record, module_of

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the tests that a run left out. Without any record there is nothing to compare a run with, and it is not red."""

    left_out: int
    proven: tuple[Proof, ...] = ()
    unproven: tuple[tuple[str, Proof | None], ...] = ()
    is_recorded: bool = True

    @property
    def red(self) -> bool:
        """Return whether the run fails for what it left out."""
        return self.is_recorded and bool(self.unproven)


def judge(record: Record | None, left_out: Collection[str], digests: dict[str, str], counts: dict[str, int]) -> Verdict:
    """Judge a run by the tests that it left out; `digests` and `counts` are those of the test modules."""
    if record is None:
        return Verdict(len(left_out), unproven=tuple((node, None) for node in sorted(left_out)), is_recorded=False)
    proven, unproven = [], []
    for node in sorted(left_out):
        module = module_of(node)
        proof = record.proof(node, digests[module], counts[module])
        if proof is None:
            unproven.append((node, record.last(node)))
        else:
            proven.append(proof)
    return Verdict(len(left_out), tuple(proven), tuple(unproven))


def lines(verdict: Verdict, command: str) -> Iterator[str]:
    """Yield what to tell people, with the command that mends it."""
    if not verdict.left_out:
        return
    if not verdict.is_recorded:
        yield f"no record says whether they pass, so this run is not judged by them; `{command}` writes one"
        return
    if verdict.proven:
        yield f"{len(verdict.proven)} of them passed on the same code: {_commits(verdict.proven)}"
    skipped = sum(proof.outcome == "skipped" for proof in verdict.proven)
    if skipped:
        yield f"{skipped} of these were skipped there, for what that machine lacked"
    if not verdict.unproven:
        return
    yield f"RED: nothing proves {len(verdict.unproven)} of them on this code; run `{command}` and commit what it writes"
    for node, last in verdict.unproven[:_SHOWN]:
        yield f"  {node} ({f'on other code at {last.commit}, {last.date}' if last else 'never recorded'})"
    if len(verdict.unproven) > _SHOWN:
        yield f"  and {len(verdict.unproven) - _SHOWN} more"


def _commits(proofs: Iterable[Proof]) -> str:
    return ", ".join(sorted({f"{each.commit} ({each.date})" for each in proofs}))
