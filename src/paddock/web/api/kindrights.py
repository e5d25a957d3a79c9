"""`GET rights/WORD/NAMESPACE`: what the user may not do with machines of a kind in a namespace."""

import asyncio

from paddock.fleet import kinds
from paddock.web import rights
from paddock.web.answers.rows import WebMissing, WebRights
from paddock.web.api.actionstates import REASONS
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

VERBS = ("create", "restore", *REASONS)


async def kind_rights(request: WebRequest) -> WebRights:
    """Return the verbs that the user's rights do not reach, each with the reason."""
    review, namespace = request.session.rights, request.parts["NAMESPACE"]
    kind = next((each for each in kinds.MACHINES if each.word == request.parts["WORD"]), None)
    if kind is None:
        words = ", ".join(each.word for each in kinds.MACHINES)
        raise WebRefusal(404, f'"{request.parts["WORD"]}" names no kind of machines', fix=f"the words are {words}")
    found = await asyncio.gather(*(rights.lack(review, kind, namespace, verb) for verb in VERBS))
    return WebRights(missing=[WebMissing(what=verb, why=why) for verb, why in zip(VERBS, found, strict=True) if why])


ROUTES = (WebRoute("GET", "rights/WORD/NAMESPACE", kind_rights),)
