"""`GET machines/PLACE/why`: the verdict on a machine with its causes, as `paddock why` gives it."""

import re

from paddock.fleet.diagnosis.explain import Explanation, explain
from paddock.fleet.diagnosis.rule import Diagnosis
from paddock.fleet.diagnosis.table import every
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.meta.ages import timestamp
from paddock.kubevirt.plan.instance.qemulog import legible
from paddock.web.answers.machine import WebCause, WebEvidence, WebWhy
from paddock.web.routes import WebRequest, WebRoute

# A command in the text of a fix: between backquotes, or what follows a colon or a bracket and begins with a program.
_COMMAND = re.compile(r"`((?:kubectl|paddock|virtctl|sudo) [^`]+)`|(?:^|: |\()((?:kubectl|paddock|virtctl|sudo) .+?)(?=\)|, |; |\. |\.?$)")
_LONGEST_QUOTE = 4000


async def why(request: WebRequest) -> WebWhy:
    """Return the explanation of a machine."""
    machine = await request.machine()
    scene = await ServerReader(request.session.client, request.session.clock).gather(machine.ref)
    return explanation(explain(scene, machine.ref))


def explanation(explained: Explanation) -> WebWhy:
    """Return an explanation for the page."""
    blind = sorted({str(why) for _, why in explained.blind})
    return WebWhy(
        state=explained.state,
        word=explained.word,
        causes=[cause(each) for each in explained.findings],
        hints=[cause(each) for each in explained.hints],
        gaps=[*explained.gaps, *(each for each in blind if each not in explained.gaps)],
    )


def cause(diagnosis: Diagnosis) -> WebCause:
    """Return one cause with its evidence and its cure."""
    rule = every().get(diagnosis.rule)
    return WebCause(
        rule=diagnosis.rule,
        title=rule.title if rule is not None else diagnosis.rule,
        object=str(diagnosis.node.ref),
        cause=diagnosis.cause,
        evidence=_evidence(diagnosis),
        fix=diagnosis.fix,
        commands=commands(diagnosis.fix),
    )


def _evidence(diagnosis: Diagnosis) -> list[WebEvidence]:
    if not diagnosis.field and not diagnosis.quote:
        return []
    since = timestamp(diagnosis.since) if diagnosis.since else ""
    text = legible(diagnosis.quote)[:_LONGEST_QUOTE]
    return [WebEvidence(where=f"{diagnosis.node.ref}, {diagnosis.field or 'status'}", text=text, since=since)]


def commands(fix: str) -> list[str]:
    """Return the commands in the text of a fix, to be copied."""
    return list(dict.fromkeys((quoted or bare).strip() for quoted, bare in _COMMAND.findall(fix)))


ROUTES = (WebRoute("GET", "machines/PLACE/why", why),)
