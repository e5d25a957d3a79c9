"""`GET me`: the user of the session, and the server behind it."""

from paddock.web.answers.rows import WebMe
from paddock.web.routes import WebRequest, WebRoute


async def me(request: WebRequest) -> WebMe:
    """Return the session."""
    session = request.session
    version = await session.client.version()
    return WebMe(
        user=session.user,
        server=session.access.server,
        version=str(version.get("gitVersion", "")),
        own=session.host.local,
        namespace=session.namespace,
        namespaces=[session.namespace],
        dialects=[],
        missing=[],
    )


ROUTES = (WebRoute("GET", "me", me),)
