"""Files out of container images: from a registry, one of its mirrors, or an archive."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from paddock.base.images.download import Download, DownloadRules
from paddock.base.images.errors import ImageError, ImageRefused
from paddock.base.images.http import WebClient
from paddock.base.images.job import Task
from paddock.base.images.layers import LayerQuery, Parts, path_parts, search
from paddock.base.images.references import endpoints, parse
from paddock.base.images.registry import (
    Manifest,
    OciArchive,
    RegistryLayer,
    RemoteRepository,
    choose,
    describe,
    host_architecture,
    remote,
)
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import RegistryImage, checksum_of, key_of, safe_url
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.store import Image, ImageStore, SourceRecord

T = TypeVar("T")

_OCI_ARCHIVE = "oci-archive:"


@dataclass(frozen=True)
class PullRequest:
    """The request of a source in its canonical form."""

    name: str
    moves: bool
    architecture: str
    paths: tuple[Parts, ...]

    @property
    def paths_key(self) -> str:
        """The paths, for the index."""
        return "|".join("/".join(path) for path in self.paths)

    def key(self, of: str) -> str:
        """The name of what is known of this wish."""
        return f"{of}|{self.architecture}|{self.paths_key}"


def wish(source: RegistryImage, paths: tuple[str, ...]) -> PullRequest:
    """Read a source; paths that are given replace its own."""
    try:
        wanted = tuple(path_parts(path) for path in (paths or ((source.path,) if source.path else ())))
    except ImageError as error:
        raise describe(safe_url(source.reference), error) from error
    architecture = source.architecture or host_architecture()
    if source.reference.startswith(_OCI_ARCHIVE):
        return PullRequest(source.reference, True, architecture, wanted)
    reference = parse(source.reference)
    return PullRequest(str(reference), reference.moves, architecture, wanted)


class Puller:
    def __init__(self, store: ImageStore, settings: ImageSettings, web: WebClient, rules: DownloadRules) -> None:
        self._store = store
        self._settings = settings
        self._web = web
        self._rules = rules

    # --- what is here already ---------------------------------------------------------------------------------------------

    def held(self, source: RegistryImage, asked: PullRequest) -> list[Image] | None:
        """Return the images that the pull policy allows without asking the registry."""
        policy = source.policy or ("Always" if asked.moves else "IfNotPresent")
        if policy == "Always":
            return None
        known = self._store.known("reference", asked.key(asked.name))
        # What was pulled with somebody's secret is shown to nobody before the registry has agreed.
        if known is not None and not (known.private and policy == "IfNotPresent") and (found := self._files(known.etag, asked)):
            return found
        if policy == "Never":
            text = f"container image {asked.name} is not present with pull policy of Never"
            error = ImageRefused("ErrImageNeverPull", text, fix="pull it first (paddock image pull), or choose the policy IfNotPresent")
            error.registry = True
            raise error
        return None

    def _files(self, manifest: str, asked: PullRequest) -> list[Image] | None:
        found = []
        for path in asked.paths or ((),):
            known = self._store.known("manifest", f"{manifest}|{'/'.join(path)}")
            image = self._store.use(known.digest) if known else None
            if image is None:
                return None
            found.append(image)
        return found

    # --- pulling ----------------------------------------------------------------------------------------------------------

    def digest(self, source: RegistryImage, stop: StopFlag) -> str:
        """The digest that a reference names now, without pulling anything."""
        asked = wish(source, ())
        try:
            return self._choose(source, asked, stop)[1].digest
        except ImageError as error:
            raise describe(asked.name, error) from error

    def pull(self, source: RegistryImage, asked: PullRequest, task: Task, keep: Callable[[Path, str], Image]) -> list[Image]:
        """The files of an image, in the order of the paths; `keep` makes an image of each."""
        if found := self.held(source, asked):
            return found
        try:
            shelf, manifest = self._choose(source, asked, task.stop)
            found = self._files(manifest.digest, asked)
            if found is None:
                found = self._extract(shelf, manifest, asked, (task, keep))
        except ImageError as error:
            raise describe(asked.name, error) from error
        private = bool(source.username or source.password or source.docker_configs)
        self._store.remember("reference", asked.key(asked.name), SourceRecord(found[0].digest, etag=manifest.digest, private=private))
        return found

    def _choose(self, source: RegistryImage, asked: PullRequest, stop: StopFlag) -> tuple[RemoteRepository | OciArchive, Manifest]:
        if asked.name.startswith(_OCI_ARCHIVE):
            archive, tag = self._archive(asked.name)
            return archive, choose(archive, tag, asked.architecture)
        reference = parse(source.reference)
        places = endpoints(reference, self._settings.mirrors, self._settings.insecure_registries)
        failures: list[ImageError] = []
        for place in places:
            one = remote(self._web, place, source, stop)
            try:
                return one, self._patiently(lambda one=one: choose(one, reference.version, asked.architecture), stop)  # type: ignore[misc]
            except ImageError as error:
                stop.check()
                failures.append(error)
        # A mirror that lacks it says less than the registry that refuses it, and one that answered more than one that did not.
        raise next((error for error in reversed(failures) if error.code not in ("Unreachable", "TimedOut")), failures[-1])

    def _patiently(self, ask: Callable[[], T], stop: StopFlag) -> T:
        """Ask again, a few times, when a server is not able to answer."""
        failures = 0
        while True:
            try:
                return ask()
            except ImageError as error:
                failures += 1
                if error.fatal or error.code not in ("Unreachable", "TimedOut") or failures >= min(3, self._rules.attempts):
                    raise
                stop.wait(self._rules.backoff.pause(failures, random.Random()))

    def _archive(self, name: str) -> tuple[OciArchive, str]:
        place = re.sub(r"^/*(?=/)", "", name.removeprefix(_OCI_ARCHIVE))
        path, colon, tag = place.rpartition(":")
        if not colon or "/" in tag:
            path, tag = place, ""
        real = Path(path).resolve()
        # Said first, and in the asker's own words: neither what is elsewhere on this host nor where a link leads is for everybody to know.
        if not any(real.is_relative_to(folder.resolve()) for folder in self._settings.archives):
            fix = "name one in a folder that --image-archives allows"
            raise ImageRefused("Denied", f"the archive {safe_url(path)} may not be read", fix=fix)
        if not real.exists():
            raise ImageRefused("NotFound", f"there is no archive {safe_url(path)}")
        return OciArchive(real), tag

    def _extract(
        self, shelf: RemoteRepository | OciArchive, manifest: Manifest, asked: PullRequest, into: tuple[Task, Callable[[Path, str], Image]]
    ) -> list[Image]:
        task, keep = into
        with self._store.partial(key_of(manifest.digest, asked.paths_key), task.stop) as directory:
            # Another may have had the lock, and done it.
            if found := self._files(manifest.digest, asked):
                return found
            with self._store.work() as work:
                wanted = LayerQuery(asked.paths, work, task.limit, task.stop.check)
                layers = _Layers(shelf, manifest, directory, (task, self._rules))
                search([lambda layer=layer: layers.fetch(layer) for layer in reversed(manifest.layers)], wanted)  # type: ignore[misc]
                images = []
                for parts in asked.paths or tuple(wanted.found):
                    image = keep(*wanted.found[parts])
                    images.append(image)
                    named = "/".join(parts) if asked.paths else ""
                    self._store.remember("manifest", f"{manifest.digest}|{named}", SourceRecord(image.digest))
            self._store.finished(directory)
        return images


class _Layers:
    """The layers of one pull, below one directory. What was downloaded stays until the pull is complete, so that it can be gone on with."""

    def __init__(self, shelf: RemoteRepository | OciArchive, manifest: Manifest, directory: Path, by: tuple[Task, DownloadRules]) -> None:
        self._shelf = shelf
        self._directory = directory
        self._task, self._rules = by
        self._total = sum(layer.size for layer in manifest.layers)

    def fetch(self, layer: RegistryLayer) -> Path:
        """The file of a layer, held against its digest before anybody looks into it."""
        directory = self._directory / layer.digest.partition(":")[2]
        directory.mkdir(exist_ok=True)
        if isinstance(self._shelf, OciArchive):
            target = directory / "body"
            target.unlink(missing_ok=True)
            self._shelf.blob(layer.digest, target)
            return target
        shelf = self._shelf
        download = Download(
            directory, lambda headers: shelf.open_blob(layer.digest, headers), self._task.stop, self._task.meter, self._rules
        )
        found = download.run(checksum=checksum_of(layer.digest), immutable=True)
        if found.path is None:
            raise ImageRefused("Refused", "the registry answers a first request as if it were not the first")
        return found.path
