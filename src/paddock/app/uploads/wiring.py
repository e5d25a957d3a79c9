"""Joins uploads to a server: one call."""

from paddock.app.uploads.endpoint import Uploads
from paddock.app.uploads.requests import GROUP, PLURAL, TokenRequests
from paddock.app.uploads.tokens import UploadTokens
from paddock.kubevirt.controllers.storage.uploads import UploadTargets
from paddock.server.api import Api
from paddock.server.context import ServerParts


def install(api: Api, parts: ServerParts, receiving: UploadTargets) -> Uploads:
    """Serve tokens from now on. What is returned answers the upload paths; whoever calls closes it."""
    tokens = UploadTokens()
    api.subresources[GROUP, PLURAL, "", "create"] = TokenRequests(parts, tokens).create
    return Uploads(receiving, tokens, parts.clock)
