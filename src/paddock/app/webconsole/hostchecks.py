"""The findings of `paddock doctor`, for the console."""

import asyncio
from pathlib import Path

from paddock.app.doctor import judge
from paddock.web.answers.rows import State, WebHostCheck
from paddock.web.session import CheckSource

_STATES: dict[str, State] = {"ok": "good", "limited": "waits", "broken": "bad"}


# Pages ask every few seconds, and a look at a host starts programs.
KEPT_SECONDS = 300.0


def source(root: Path) -> CheckSource:
    """Return the checks of this host, with the directory of a server. They are made anew after five minutes."""
    turn = asyncio.Lock()
    made: list[WebHostCheck] = []
    since = -KEPT_SECONDS

    async def checks() -> list[WebHostCheck]:
        nonlocal made, since
        async with turn:
            now = asyncio.get_running_loop().time()
            if now - since >= KEPT_SECONDS:
                made, since = await examine(), now
        return made

    async def examine() -> list[WebHostCheck]:
        from paddock.app.doctor.gather import gather  # noqa: PLC0415 - nobody looks at a host at the start

        found = judge.judge(await gather(root))
        return [
            WebHostCheck(
                name=each.subject,
                state=_STATES[each.outcome.state],
                text=". ".join(filter(None, (each.outcome.found, each.outcome.effect))),
                fix=each.outcome.fix,
            )
            for each in found
        ]

    return checks
