"""`GET kinds/TOPIC`, `GET tasks` and the cancelling of tasks: what the stream sends, once."""

from typing import cast, get_args

from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.web.answers.machine import WebEvents
from paddock.web.answers.rows import WebDone, WebEventPart, WebObjectRow, WebObjectRows, WebTaskRow, WebTaskRows
from paddock.web.live.taskrows import TASK_KINDS
from paddock.web.live.topicnames import WebTopic
from paddock.web.routes import ID, WebRefusal, WebRequest, WebRoute

_NO_OBJECTS = ("machines", "usage", "tasks")
_OBJECT_TOPICS = tuple(each for each in get_args(WebTopic) if each not in _NO_OBJECTS)


async def kinds(request: WebRequest) -> WebObjectRows | WebEvents:
    """Return the rows of a topic."""
    topic = request.parts["TOPIC"]
    if topic not in _OBJECT_TOPICS:
        raise WebRefusal(404, f'there is no topic "{topic}"', fix=f"the topics are {', '.join(_OBJECT_TOPICS)}")
    rows = await request.session.live.rows(cast(WebTopic, topic))
    if topic == "events":
        return WebEvents(events=cast(list[WebEventPart], rows))
    return WebObjectRows(rows=cast(list[WebObjectRow], rows))


async def tasks(request: WebRequest) -> WebTaskRows:
    return WebTaskRows(tasks=await _tasks(request))


async def _tasks(request: WebRequest) -> list[WebTaskRow]:
    return cast(list[WebTaskRow], await request.session.live.rows("tasks"))


async def cancel(request: WebRequest) -> WebDone:
    """Delete the object that does the work, where that ends the work and nothing else."""
    name = request.parts[ID]
    qualified, _, key = name.partition("/")
    kind = next((each for each in TASK_KINDS if each.target.qualified == qualified), None)
    task = next((each for each in await _tasks(request) if each.id == name), None)
    if kind is None or task is None:
        raise WebRefusal(404, "there is no such task", why="it ended, or its object was deleted")
    if task.keeps or task.state != "running":
        raise WebRefusal(409, f'"{task.title}" cannot be cancelled', why=task.keeps or "it has ended")
    client, place = request.session.client, Key.of(key)
    try:
        # A new object of the same name is not the one that the page shows.
        uid = (await client.get(kind.target, place))["metadata"].get("uid", "")
        await client.delete(kind.target, place, DeletionOptions(uid=uid))
    except NotFound as error:
        raise WebRefusal(404, "there is no such task", why="it ended in the meantime") from error
    return WebDone(text=f"cancelled: {task.title}")


ROUTES = (
    WebRoute("GET", "kinds/TOPIC", kinds),
    WebRoute("GET", "tasks", tasks),
    WebRoute("POST", "tasks/ID/cancel", cancel),
)
