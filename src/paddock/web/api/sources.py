"""`GET catalog`, `GET keys` and `GET schema/GROUP/KIND`: what forms and the editor are made from."""

import asyncio
from functools import cache
from pathlib import Path

import orjson

from paddock.fleet.creation import userdata
from paddock.kubernetes import catalog as declared
from paddock.kubernetes.schema.generate import jsonschema
from paddock.web.answers.editing import WebCatalog, WebKeys, WebPublicKey
from paddock.web.identities import KUBECONFIG
from paddock.web.routes import WebBytes, WebRefusal, WebRequest, WebRoute

# The group that Kubernetes writes as nothing.
CORE = "core"
_MOST_KEYS, _MOST_BYTES = 50, 16 << 10


async def catalog(request: WebRequest) -> WebCatalog:
    """Return the images that have a name."""
    return WebCatalog(images=await request.session.host.images.catalog())


async def keys(request: WebRequest) -> WebKeys:
    """Return the public keys of the user who runs the console. They are nobody else's: a person who signed in by a token gets none."""
    if request.session.identity != KUBECONFIG:
        return WebKeys(keys=[])
    return WebKeys(keys=await asyncio.to_thread(public_keys, Path.home() / ".ssh"))


def public_keys(folder: Path) -> list[WebPublicKey]:
    """Return the keys of the `.pub` files of a directory. Files that hold something else are left out."""
    found = []
    try:
        files = sorted(folder.glob("*.pub"))[:_MOST_KEYS]
    except OSError:
        return []
    for file in files:
        try:
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                continue
            text = userdata.public_key(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError, userdata.BadPublicKey):
            continue
        sort, _, rest = text.partition(" ")
        found.append(WebPublicKey(name=rest.partition(" ")[2] or file.stem, type=sort, text=text, source=str(file)))
    return found


async def schema(request: WebRequest) -> WebBytes:
    """Return the JSON Schema of a kind that Paddock declares."""
    group, kind = request.parts["GROUP"], request.parts["KIND"]
    return WebBytes(_schema("" if group == CORE else group, kind), "application/schema+json")


@cache
def _schema(group: str, kind: str) -> bytes:
    found = declared.find(group, kind)
    if found is None:
        raise WebRefusal(404, f"there is no schema of {kind} in {group or CORE}", why="Paddock does not declare this kind")
    return orjson.dumps(jsonschema.document(found))


ROUTES = (
    WebRoute("GET", "catalog", catalog),
    WebRoute("GET", "keys", keys),
    WebRoute("GET", "schema/GROUP/KIND", schema),
)
