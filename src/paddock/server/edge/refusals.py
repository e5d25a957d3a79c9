"""Answers to requests that the edge refuses by itself."""

from paddock.server.edge.http import HttpResponse

_STATUS = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":"TooManyRequests",'
    b'"details":{"retryAfterSeconds":1},"code":429}'
)
_TOO_LARGE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Request entity too large: limit is %d",'
    b'"reason":"RequestEntityTooLarge","code":413}'
)
_JSON = ("content-type", "application/json")


class HttpRefusal(Exception):
    """The edge does not take a request; the connection ends."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


def large_head() -> HttpRefusal:
    """The head is larger than a head may be."""
    return HttpRefusal(HttpResponse(431, b"request header fields too large\n"))


def large_body(limit: int) -> HttpRefusal:
    """The body is larger than a body may be."""
    return HttpRefusal(HttpResponse(413, _TOO_LARGE % limit, (_JSON,)))


def slow() -> HttpRefusal:
    """The request did not arrive in its time."""
    return HttpRefusal(HttpResponse(408, b"the request took too long to arrive\n"))


def many_connections() -> HttpRefusal:
    return HttpRefusal(_later(b"too many connections, please try again later"))


def many_bodies() -> HttpRefusal:
    """The memory for bodies is taken."""
    return HttpRefusal(_later(b"too many large requests, please try again later"))


def many_requests() -> HttpRefusal:
    """A client does not wait for its answers."""
    return HttpRefusal(HttpResponse(429, b"too many requests in one pipeline\n"))


def malformed(why: str) -> HttpRefusal:
    """The client sent no request."""
    return HttpRefusal(HttpResponse(400, f"{why}\n".encode()))


def of(error: Exception) -> HttpRefusal:
    """Return the refusal behind a parser's error: our own, raised inside a callback, or one of a request that is no HTTP."""
    cause = error.__context__
    return cause if isinstance(cause, HttpRefusal) else malformed("malformed HTTP request")


def _later(message: bytes) -> HttpResponse:
    return HttpResponse(429, _STATUS % message, (_JSON, ("retry-after", "1")))
