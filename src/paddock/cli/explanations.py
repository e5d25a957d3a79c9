"""Explanations as a few lines for people, or as data for programs."""

from collections.abc import Iterator
from typing import Any

from paddock.base.lines import one_line
from paddock.fleet.diagnosis.explain import GAPS, Explanation
from paddock.fleet.diagnosis.rule import Diagnosis
from paddock.fleet.diagnosis.scene import Ask, EventQuery, ObjectPlace
from paddock.kubernetes.meta import ages
from paddock.kubevirt.plan.instance.qemulog import legible

# What stands before the first finding, by what it means.
_LABELS = {"fails": "cause", "waits": "waits", "notice": "but"}
_LONGEST_QUOTE = 400


def lines(answer: Explanation, now: float) -> Iterator[str]:
    """The answer in two to six lines; one when nothing is wrong."""
    finding = answer.cause
    if finding is None:
        yield _head(answer)
    else:
        # What fails does not get there by waiting.
        word = answer.word.removesuffix(" yet") if answer.state == "fails" else answer.word
        yield one_line(f"{answer.ref} {word}.")
        yield _line(_LABELS[answer.state], finding.cause)
        yield from _evidence(finding, now)
        yield _line("fix", finding.fix)
        if others := [each for each in answer.findings[1:] if each.rank < each.rank.TOLD and each.node.ref != answer.findings[0].node.ref]:
            yield _line("besides", "; ".join(each.cause.rstrip(".") for each in others[:2]) + ".")
    if answer.blind and answer.state not in ("good", "unknown"):
        yield _line("not seen", f"{', '.join(_kinds(answer))}: your rights do not reach there, and the cause may lie there.")


def _head(answer: Explanation) -> str:
    hints = "".join(f" ({each.cause})" for each in answer.hints if each.rule not in GAPS)
    if answer.state == "good":
        return one_line(f"{answer.ref} {answer.word}; nothing is wrong with it.{hints}")
    if answer.state == "unknown":
        return one_line(f"{answer.ref} {answer.word}; nothing was found. Not checked: {'; '.join(answer.gaps)}.{hints}")
    return one_line(f"{answer.ref} {answer.word}, and nothing says why.")


def _evidence(finding: Diagnosis, now: float) -> Iterator[str]:
    place = str(finding.node.ref)
    if finding.node.data is None and finding.node.above is not None and not finding.field.startswith("event"):
        place = str(finding.node.above.ref)
    is_quoted = finding.quote in finding.cause
    when = f", {ages.since(finding.since, now)} ago" if finding.since else ""
    quote = " / ".join(line.strip() for line in legible(finding.quote).splitlines() if line.strip())
    shown = quote if len(quote) <= _LONGEST_QUOTE else f"{quote[:_LONGEST_QUOTE]} ..."
    yield _line("seen", f"{place}, {finding.field or 'status'}{when}" + (f": {shown}" if shown and not is_quoted else ""))


def _line(label: str, text: str) -> str:
    return f"  {label + ':':<9} {one_line(text)}"


def _kinds(answer: Explanation) -> list[str]:
    return sorted({"events" if isinstance(asked, EventQuery) else f"{asked.kind}s" for asked, _ in answer.blind})


def as_data(answer: Explanation) -> dict[str, Any]:
    """The answer for programs."""
    return {
        "object": _ref(answer.ref),
        "state": answer.state,
        "says": answer.word,
        "findings": [_finding(each) for each in answer.findings],
        "hints": [_finding(each) for each in answer.hints],
        "notChecked": list(answer.gaps),
        "notSeen": [{**_asked(asked), "why": why} for asked, why in answer.blind],
    }


def _finding(finding: Diagnosis) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "weight": finding.mood,
        "cause": finding.cause,
        "fix": finding.fix,
        "object": _ref(finding.node.ref),
        "field": finding.field,
        "quote": finding.quote,
        "since": ages.timestamp(finding.since) if finding.since else None,
        "way": [_ref(each.ref) for each in finding.node.trail],
    }


def _ref(ref: ObjectPlace) -> dict[str, str]:
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _asked(asked: Ask) -> dict[str, str]:
    if isinstance(asked, EventQuery):
        return {"kind": "Event", "namespace": asked.namespace, "about": asked.name}
    return {name: str(value) for name, value in asked._asdict().items()}
