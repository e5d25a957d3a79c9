"""What `paddock doctor` finds, for the console."""

from pathlib import Path

from paddock.web.answers.rows import State, WebHostCheck
from paddock.web.session import CheckSource

_STATES: dict[str, State] = {"ok": "good", "limited": "waits", "broken": "bad"}


def source(root: Path) -> CheckSource:
    """Return the checks of this host, with the directory of a server."""

    async def checks() -> list[WebHostCheck]:
        from paddock.app.doctor import judge  # noqa: PLC0415 - nobody looks at a host at the start
        from paddock.app.doctor.gather import gather  # noqa: PLC0415 - as above

        found = judge.judge(await gather(root))
        return [
            WebHostCheck(
                name=each.subject,
                state=_STATES[each.outcome.state],
                text=". ".join(filter(None, (each.outcome.found, each.outcome.means))),
                fix=each.outcome.fix,
            )
            for each in found
        ]

    return checks
