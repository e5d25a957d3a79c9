"""Credentials from a program of the user's: `client.authentication.k8s.io`, v1 and v1beta1.

The program is run when a credential is first needed, when the last one has expired, and after a 401; never by two requests at once.
It gets no terminal: Paddock works without a person beside it.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import ClientCertificate, Credential, bearer
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.transport import Headers
from paddock.kubernetes.meta import ages

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_SECONDS = 60.0
_MOST_BYTES = 1024 * 1024
_MOST_SAID = 500


class ExecVariable(msgspec.Struct, frozen=True):
    """An environment variable for the program."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The `exec` entry of a kubeconfig's user."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecPlugin:
    """Runs the program and keeps what it said for as long as that holds."""

    def __init__(self, config: ExecConfig, clock: Clock, *, cluster: Mapping[str, Any], folder: Path, extra: Headers = ()) -> None:
        _check(config)
        self._config = config
        self._clock = clock
        self._cluster = cluster
        self._folder = folder
        self._extra = extra
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: float | None = None

    async def current(self) -> Credential:
        """Return the current credential, from the last run of the program or a new one."""
        async with self._lock:
            expired = self._expires is not None and self._clock.seconds() >= self._expires
            if self._credential is None or expired:
                self._credential, self._expires = self._read(await self._run())
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Ask the program again, unless somebody has since."""
        if self._credential == credential:
            self._credential = None
        return True

    async def _run(self) -> bytes:
        config = self._config
        command = config.command if "/" not in config.command else str(self._folder / config.command)
        environment = {**os.environ, **{each.name: each.value for each in config.env or ()}}
        environment["KUBERNETES_EXEC_INFO"] = orjson.dumps(self._info()).decode()
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *(config.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise BadAccess(f"cannot run {command} to get a credential", why=str(error), fix=config.install_hint) from error
        try:
            async with asyncio.timeout(_SECONDS):
                output, said = await process.communicate()
        except TimeoutError as error:
            raise BadAccess(f"{command} gave no credential within {_SECONDS:g} s", fix="run it by hand to see what it waits for") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            last = said.decode(errors="replace").strip()[-_MOST_SAID:]
            raise BadAccess(f"{command} ended with {process.returncode} instead of a credential", why=last, fix=config.install_hint)
        return output

    def _info(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster
        return {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}

    def _read(self, output: bytes) -> tuple[Credential, float | None]:
        command = self._config.command
        try:
            said = msgspec.json.decode(output[:_MOST_BYTES], type=_ExecCredential)
        except msgspec.MsgspecError as error:
            raise BadAccess(f"{command} gave no ExecCredential", why=str(error)) from error
        if said.api_version != self._config.api_version or said.kind != "ExecCredential":
            raise BadAccess(f"{command} answered {said.api_version or 'nothing'} where {self._config.api_version} was asked for")
        status = said.status or _Status()
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise BadAccess(f"{command} gave neither a token nor a certificate with its key")
        expires = ages.seconds_of(status.expiration_timestamp) if status.expiration_timestamp else None
        headers = bearer(status.token).headers if status.token else ()
        certificate = None
        if status.client_certificate_data:
            certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        return Credential((*headers, *self._extra), certificate), expires


def _check(config: ExecConfig) -> None:
    if not config.command:
        raise BadAccess("the exec plugin of the kubeconfig names no command")
    if config.api_version not in _VERSIONS:
        raise BadAccess(
            f"the exec plugin {config.command} speaks {config.api_version or 'no version'}",
            why=f"only {' and '.join(_VERSIONS)} exist any more",
            fix="update the plugin and its entry in the kubeconfig",
        )
    if config.interactive_mode == "Always":
        raise BadAccess(
            f"the exec plugin {config.command} must ask a person (interactiveMode: Always)",
            why="nobody is there to answer",
            fix="use a plugin that works by itself, or a token",
        )
