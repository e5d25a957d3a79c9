"""Joins uploads to a server: one call."""

from paddock.apiserver.api import Api
from paddock.apiserver.edge.http import Doors
from paddock.apiserver.edge.server import Server
from paddock.apiserver.parts import Parts
from paddock.app.uploads.endpoint import PREFIXES, Uploads
from paddock.app.uploads.requests import GROUP, PLURAL, TokenRequests
from paddock.app.uploads.tokens import UploadTokens
from paddock.controllers.storage.receiving import Receiving


def install(api: Api, edge: Server, parts: Parts, receiving: Receiving) -> Uploads:
    """Serve tokens and the upload paths from now on. Whoever calls closes what is returned."""
    tokens = UploadTokens()
    uploads = Uploads(receiving, tokens, parts.clock)
    api.subresources[GROUP, PLURAL, "", "create"] = TokenRequests(parts, tokens).create
    edge.doors = Doors(PREFIXES, uploads.answer)
    return uploads
