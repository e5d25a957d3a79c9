"""Disks out of container images: from registries as they are, and from images as somebody may have made them."""

import asyncio
import base64
import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from paddock.base.images import references, zstd
from paddock.base.images import registry as registry_documents
from paddock.base.images.library import Image, ImageError, ImageLibrary, ImageSettings
from paddock.base.images.sources import RegistryImage as From
from tests.coroutines import run_by
from tests.kit.servers import imageserver
from tests.kit.servers.imageserver import Fault, Registry, Server, digest_of, layer, running, special
from tests.unit.base.images.conftest import QUICK, disk

DISK = disk()


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running(Registry()) as one:
        yield one


@pytest.fixture
def settings(registry: Registry) -> ImageSettings:
    hosts = frozenset({registry.host})
    return ImageSettings(allow=("127.0.0.1",), proxies={}, attempts=3, backoff=QUICK, reserve_bytes=0, insecure_registries=hosts)


@pytest.fixture
def fetch(root: Path, settings: ImageSettings, registry: Registry) -> "Pull":
    return Pull(root, settings, registry)


class Pull:
    def __init__(self, root: Path, settings: ImageSettings, registry: Registry) -> None:
        self.root, self.settings, self._registry = root, settings, registry

    def __call__(self, reference: str = "disks/one:1", **more: object) -> Image:
        if "://" not in reference:
            reference = f"docker://{self._registry.host}/{reference}"
        source = dataclasses.replace(From(reference), **more)  # type: ignore[arg-type]

        async def run() -> Image:
            return await ImageLibrary(self.root, self.settings).fetch(source)

        return asyncio.run(run())

    def failure(self, reference: str = "disks/one:1", **more: object) -> ImageError:
        with pytest.raises(ImageError) as caught:
            self(reference, **more)
        assert caught.value.registry
        return caught.value


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, bytes])
@pytest.mark.spec("kubevirt", 64)
def test_the_only_file_below_disk(pack: Callable[[bytes], bytes], fetch: Pull, registry: Registry) -> None:
    registry.image("disks/one", "1", layer({"disk/": special(tarfile.DIRTYPE), "disk/fedora.img": DISK}, pack=pack))
    image = fetch()
    assert image.path.read_bytes() == DISK
    assert image.digest == hashlib.sha256(DISK).hexdigest()
    assert image.format == "raw"


@pytest.mark.spec("kubevirt", 64)
def test_layers_are_taken_from_the_top(fetch: Pull, registry: Registry) -> None:
    old, other = disk(seed=2), disk(seed=3)
    registry.image("disks/one", "1", layer({"disk/a.img": old, "etc/x": b"x"}), layer({"disk/a.img": DISK}))
    assert fetch().path.read_bytes() == DISK
    registry.image("disks/one", "2", layer({"disk/a.img": old}), layer({"disk/.wh.a.img": b"", "disk/b.img": other}))
    assert fetch("disks/one:2").path.read_bytes() == other
    registry.image("disks/one", "3", layer({"disk/a.img": old}), layer({"disk/.wh..wh..opq": b"", "disk/b.img": DISK}))
    assert fetch("disks/one:3").path.read_bytes() == DISK
    registry.image("disks/one", "4", layer({"disk/a.img": old}), layer({".wh.disk": b""}))
    assert fetch.failure("disks/one:4").code == "NotFound"


@pytest.mark.spec("kubevirt", 64)
def test_a_file_by_its_path(fetch: Pull, registry: Registry) -> None:
    registry.image("disks/one", "1", layer({"disk/a.img": DISK, "disk/b.img": b"b" * 512, "images/c.img": b"c" * 512}))
    assert fetch(path="/disk/a.img").path.read_bytes() == DISK
    assert fetch(path="images/c.img").path.read_bytes() == b"c" * 512
    assert fetch.failure(path="/disk/d.img").code == "NotFound"
    assert fetch.failure(path="/disk/../etc/passwd").code == "Refused"


LINK = special(tarfile.SYMTYPE, "/etc/shadow")
UNSAFE: dict[str, tuple[Mapping[str, bytes | tarfile.TarInfo], str]] = {
    "two files": ({"disk/a": b"a" * 512, "disk/b": b"b" * 512}, "NotAnImage"),
    "the same file twice": ({"disk/a": b"a" * 512, "./disk/a": b"b" * 512}, "Unsafe"),
    "a link": ({"disk/a": special(tarfile.SYMTYPE, "/etc/shadow")}, "Unsafe"),
    "a hard link": ({"disk/a": special(tarfile.LNKTYPE, "etc/shadow")}, "Unsafe"),
    "a device": ({"disk/a": special(tarfile.BLKTYPE)}, "Unsafe"),
    "a pipe": ({"disk/a": special(tarfile.FIFOTYPE)}, "Unsafe"),
    "the directory is a link": ({"disk": special(tarfile.SYMTYPE, "/etc")}, "Unsafe"),
    "a name that leaves the archive": ({"disk/../../etc/passwd": b"x"}, "Unsafe"),
    "an absolute name": ({"/disk/a": b"x" * 512}, "Unsafe"),
    "a name that leaves it elsewhere": ({"x/../../y": b"x", "disk/a": b"x" * 512}, "Unsafe"),
    "no file": ({"other/a": b"x"}, "NotFound"),
}


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.spec("kubevirt", 64)
def test_images_that_are_refused(name: str, fetch: Pull, registry: Registry) -> None:
    files, code = UNSAFE[name]
    registry.image("disks/one", "1", layer(files))
    error = fetch.failure()
    assert (error.code, error.fatal) == (code, True)
    assert not list((fetch.root / "sha256").iterdir())


def test_a_layer_that_claims_to_be_endless_is_not_read(fetch: Pull, registry: Registry) -> None:
    info = tarfile.TarInfo("disk/a")
    info.size = 1 << 60
    head = info.tobuf(tarfile.GNU_FORMAT)
    registry.image("disks/one", "1", gzip.compress(head + bytes(4096)))
    assert fetch.failure().code == "TooLarge"


def test_the_architecture_of_the_host_or_the_one_asked_for(fetch: Pull, registry: Registry) -> None:
    from paddock.base.images.registry import host_architecture  # noqa: PLC0415 - the rest needs nothing of it

    mine = registry.image("disks/one", "x", layer({"disk/a": DISK}))
    other = registry.image("disks/one", "y", layer({"disk/a": disk(seed=2)}))
    registry.index("disks/one", "1", {"s390x": other, host_architecture(): mine})
    assert fetch().path.read_bytes() == DISK
    assert fetch(architecture="s390x").path.read_bytes() == disk(seed=2)
    error = fetch.failure(architecture="riscv64")
    assert (error.code, "there is " in str(error)) == ("NotFound", True)


def test_a_digest_is_what_it_says(fetch: Pull, registry: Registry) -> None:
    digest = registry.image("disks/one", "1", layer({"disk/a": DISK}))
    assert fetch(f"disks/one@{digest}").path.read_bytes() == DISK
    registry.manifests["disks/one", digest] = (b'{"schemaVersion": 2, "layers": []}', "x")
    assert fetch(f"disks/one@{digest}").path.read_bytes() == DISK
    assert fetch.failure(f"disks/one@{digest}", policy="Always").code == "Checksum"


@pytest.mark.spec("kubevirt", 64)
def test_a_layer_is_held_against_its_digest(fetch: Pull, registry: Registry) -> None:
    raw = layer({"disk/a": DISK})
    registry.image("disks/one", "1", raw)
    registry.blobs[digest_of(raw)] = layer({"disk/a": disk(seed=2)})
    assert fetch.failure().code == "Checksum"


# --- pull policies --------------------------------------------------------------------------------------------------------------


def asked(registry: Registry) -> int:
    count = len(registry.seen)
    registry.seen.clear()
    return count


def test_pull_policies(fetch: Pull, registry: Registry) -> None:
    registry.image("disks/one", "1", layer({"disk/a": DISK}))
    never = fetch.failure(policy="Never")
    assert (never.code, never.fatal) == ("ErrImageNeverPull", True)
    assert asked(registry) == 0
    fetch(policy="IfNotPresent")
    assert asked(registry) == 2
    fetch()
    fetch(policy="Never")
    assert asked(registry) == 0
    # Always asks for the manifest, and pulls only what is another.
    fetch(policy="Always")
    assert asked(registry) == 1
    registry.image("disks/one", "1", layer({"disk/a": disk(seed=2)}))
    assert fetch(policy="IfNotPresent").path.read_bytes() == DISK
    assert fetch(policy="Always").path.read_bytes() == disk(seed=2)


def test_latest_is_asked_for_each_time(fetch: Pull, registry: Registry) -> None:
    registry.image("disks/one", "latest", layer({"disk/a": DISK}))
    fetch("disks/one")
    asked(registry)
    fetch("disks/one:latest")
    assert asked(registry) == 1


@pytest.mark.spec("kubevirt", 64)
def test_a_missing_image_is_said_in_the_registrys_words_and_can_come_later(fetch: Pull, registry: Registry) -> None:
    error = fetch.failure()
    assert str(error).startswith(f"failed to pull image {registry.host}/disks/one:1: ")
    assert "MANIFEST_UNKNOWN: manifest unknown" in str(error)
    registry.image("disks/one", "1", layer({"disk/a": DISK}))
    assert fetch().path.read_bytes() == DISK


# --- credentials ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auth", ["basic", "bearer"])
@pytest.mark.spec("kubevirt", 64)
def test_credentials_and_pull_secrets(auth: str, root: Path, settings: ImageSettings) -> None:
    with running(Registry(auth)) as registry:
        registry.image("disks/one", "1", layer({"disk/a": DISK}))
        pull = Pull(root, msgspec.structs.replace(settings, insecure_registries=frozenset({registry.host})), registry)
        assert pull.failure().code == "NotAuthorized"
        assert pull.failure(username="me", password="wrong").code == "NotAuthorized"
        assert pull(username="me", password="secret").path.read_bytes() == DISK
        # That it is here helps nobody who may not have it; and one who may needs no second download.
        assert pull.failure().code == "NotAuthorized"
        packed = base64.b64encode(b"me:secret").decode()
        config = json.dumps({"auths": {"other.example": {"auth": "eDp5"}, f"http://{registry.host}/v2/": {"auth": packed}}})
        registry.seen.clear()
        assert pull(docker_configs=("no JSON", config)).path.read_bytes() == DISK
        assert not any("/blobs/" in seen.path for seen in registry.seen)


def test_a_token_does_not_follow_a_redirect(root: Path, settings: ImageSettings) -> None:
    with running(Registry("bearer")) as registry, running(Server()) as store:
        registry.image("disks/one", "1", layer({"disk/a": DISK}))
        registry.elsewhere = store
        pull = Pull(root, msgspec.structs.replace(settings, insecure_registries=frozenset({registry.host})), registry)
        assert pull(username="me", password="secret").path.read_bytes() == DISK
        assert store.seen
        assert not any("authorization" in seen.headers for seen in store.seen)


# --- servers --------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 64)
def test_a_broken_layer_is_gone_on_with(fetch: Pull, registry: Registry) -> None:
    raw = layer({"disk/a": DISK})
    registry.image("disks/one", "1", raw)
    path = f"/v2/disks/one/blobs/{digest_of(raw)}"
    registry.faults[path] = [Fault(after=100_000, then="close"), Fault(503)]
    assert fetch().path.read_bytes() == DISK
    assert [seen.headers.get("range") for seen in registry.seen if seen.path == path] == [None, "bytes=100000-", "bytes=100000-"]


def test_a_layer_survives_a_crash_of_ours(fetch: Pull, registry: Registry) -> None:
    raw = layer({"disk/a": DISK})
    registry.image("disks/one", "1", raw)
    path = f"/v2/disks/one/blobs/{digest_of(raw)}"
    registry.faults[path] = [Fault(after=100_000, then="close"), *[Fault(503)] * 2]
    assert not fetch.failure().fatal
    assert fetch().path.read_bytes() == DISK
    assert registry.seen[-1].headers["range"] == "bytes=100000-"


def test_mirrors_are_asked_first_and_the_registry_when_they_have_nothing(root: Path, settings: ImageSettings, registry: Registry) -> None:
    with running(Registry()) as mirror:
        mirror.image("cache/disks/one", "1", layer({"disk/a": DISK}))
        registry.image("kubevirt/disks/two", "1", layer({"disk/a": disk(seed=2)}))
        mirrors = {"registry:5000/kubevirt": (f"http://{mirror.host}/cache", f"http://{registry.host}/kubevirt")}
        pull = Pull(root, msgspec.structs.replace(settings, mirrors=mirrors), registry)
        assert pull("docker://registry:5000/kubevirt/disks/one:1").path.read_bytes() == DISK
        assert pull("docker://registry:5000/kubevirt/disks/two:1").path.read_bytes() == disk(seed=2)
        assert pull.failure("docker://registry:5000/kubevirt/disks/three:1").code == "NotFound"


def test_a_registry_without_tls_is_asked_only_when_it_is_named_so(root: Path, settings: ImageSettings, registry: Registry) -> None:
    registry.image("disks/one", "1", layer({"disk/a": DISK}))
    pull = Pull(root, msgspec.structs.replace(settings, insecure_registries=frozenset()), registry)
    assert not pull.failure().fatal
    assert not registry.seen


# --- archives, files ------------------------------------------------------------------------------------------------------------


def archive(registry: Registry, path: Path, tag: str) -> Path:
    """Return the content of a registry as one file."""
    files = {f"blobs/{digest.replace(':', '/')}": data for digest, data in registry.blobs.items()}
    entries = []
    for (_, version), (raw, kind) in registry.manifests.items():
        files[f"blobs/{digest_of(raw).replace(':', '/')}"] = raw
        if version == tag:
            name = {"org.opencontainers.image.ref.name": tag}
            entries.append({"mediaType": kind, "digest": digest_of(raw), "size": len(raw), "annotations": name})
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    path.write_bytes(layer(files, pack=bytes))
    return path


def test_archives_in_folders_that_are_named_for_it(root: Path, settings: ImageSettings, registry: Registry, tmp_path: Path) -> None:
    registry.image("disks/one", "1", layer({"disk/a": DISK}))
    folder = tmp_path / "archives"
    folder.mkdir()
    file = archive(registry, folder / "one.tar", "1")
    pull = Pull(root, msgspec.structs.replace(settings, archives=(folder,)), registry)
    assert pull(f"oci-archive://{file}:1").path.read_bytes() == DISK
    assert pull(f"oci-archive://{file}").path.read_bytes() == DISK
    assert pull.failure(f"oci-archive://{file}:2").code == "NotFound"
    (tmp_path / "secret.tar").write_bytes(file.read_bytes())
    (folder / "link.tar").symlink_to(tmp_path / "secret.tar")
    for path in (tmp_path / "secret.tar", folder / "link.tar", folder / ".." / "secret.tar"):
        assert pull.failure(f"oci-archive://{path}:1").code == "Denied"


@run_by(asyncio.run)
async def test_files_as_they_are(root: Path, settings: ImageSettings, registry: Registry) -> None:
    kernel, initrd = b"MZ kernel", gzip.compress(b"initrd" * 100)
    registry.image("kernels/one", "1", layer({"boot/vmlinuz": kernel, "boot/initrd": initrd}))
    source = From(f"{registry.host}/kernels/one:1")
    images = ImageLibrary(root, settings)
    found = await images.fetch_files(source, ("/boot/initrd", "/boot/vmlinuz"))
    again = await images.fetch_files(source, ("/boot/initrd", "/boot/vmlinuz"))
    assert found == again
    assert [image.path.read_bytes() for image in found] == [initrd, kernel]


@run_by(asyncio.run)
async def test_what_a_reference_names_now(root: Path, settings: ImageSettings, registry: Registry) -> None:
    digest = registry.image("disks/one", "1", layer({"disk/a": DISK}))
    assert await ImageLibrary(root, settings).resolve(From(f"docker://{registry.host}/disks/one:1")) == digest
    assert not any("/blobs/" in seen.path for seen in registry.seen)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker://quay.io/containerdisks/fedora:38", "quay.io/containerdisks/fedora:38"),
        ("fedora", "docker.io/library/fedora:latest"),
        ("kubevirt/fedora", "docker.io/kubevirt/fedora:latest"),
        ("registry:5000/kubevirt/x:devel", "registry:5000/kubevirt/x:devel"),
        ("localhost/x", "localhost/x:latest"),
        ("[::1]:5000/x", "[::1]:5000/x:latest"),
        ("index.docker.io/library/x:1", "docker.io/library/x:1"),
        (f"quay.io/a/b@sha256:{'0' * 64}", f"quay.io/a/b@sha256:{'0' * 64}"),
        (f"quay.io/a/b:c@sha256:{'0' * 64}", f"quay.io/a/b:c@sha256:{'0' * 64}"),
    ],
)
def test_references(text: str, expected: str) -> None:
    assert str(references.parse(text)) == expected


@pytest.mark.parametrize(
    "text", ["", "docker://", "x y", "quay.io/A/b", "quay.io/a:b c", "quay.io/a@md5:1", "quay.io/../a", "a/b?c", "-x.y/z"]
)
def test_no_references(text: str) -> None:
    with pytest.raises(ImageError):
        references.parse(text)


def test_the_server_of_these_tests_speaks_as_others_do() -> None:
    """A layer made here is one that the standard library reads."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer({"disk/a": b"x"})))) as tar:
        assert tar.getnames() == ["disk/a"]
    assert imageserver.basic("a", "b") == "Basic YTpi"


# --- documents and headers of a hostile server ------------------------------------------------------------------------------------


class Shelf:
    """A registry that has one document under every name."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def manifest(self, version: str) -> tuple[bytes, str]:
        return self._raw, version


DIGEST = "sha256:" + "0" * 64
HOSTILE_DOCUMENTS = {
    "no JSON": (b"{", "NotAnImage"),
    "no object": (b"[]", "NotAnImage"),
    "deep": (b'{"x":' + b"[" * 100_000, "NotAnImage"),
    "a number of many digits": (b'{"schemaVersion":' + b"1" * 5000 + b"}", "NotAnImage"),
    "no text": (b'{"mediaType":"\xff"}', "NotAnImage"),
    "layers without a digest": (b'{"schemaVersion":2,"layers":[{"size":1}]}', "NotAnImage"),
    "a digest that leads elsewhere": (b'{"schemaVersion":2,"layers":[{"size":1,"digest":"sha256:%s"}]}' % (b"../" * 30), "NotAnImage"),
    "a layer of a negative size": (b'{"schemaVersion":2,"layers":[{"size":-1,"digest":"%s"}]}' % DIGEST.encode(), "NotAnImage"),
    "neither a manifest nor an index": (b'{"schemaVersion":2}', "Unsupported"),
    "another version": (b'{"schemaVersion":1,"layers":[]}', "Unsupported"),
    "an index in an index": (b'{"manifests":[{"size":1,"digest":"%s"}]}' % DIGEST.encode(), "Unsupported"),
}


@pytest.mark.parametrize("name", HOSTILE_DOCUMENTS)
def test_hostile_documents(name: str) -> None:
    raw, code = HOSTILE_DOCUMENTS[name]
    with pytest.raises(ImageError) as caught:
        registry_documents.choose(Shelf(raw), "1", "amd64")
    assert (caught.value.code, caught.value.fatal) == (code, True)


def test_no_objects_are_made_of_what_a_manifest_holds_besides() -> None:
    """A decoder that makes objects holds the interpreter for hundreds of milliseconds."""
    empty = b'"layers":[{"size":7,"digest":"%s"}]' % DIGEST.encode()
    raw = b'{"schemaVersion":2,"more":[' + b"{}," * 1_000_000 + b"0]," + empty + b"}"
    tracemalloc.start()
    try:
        found = registry_documents.choose(Shelf(raw), "1", "amd64")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert found.layers == (registry_documents.RegistryLayer(DIGEST, 7),)


def test_an_archive_whose_index_names_itself_is_refused(root: Path, settings: ImageSettings, registry: Registry, tmp_path: Path) -> None:
    entry = {"digest": "1".ljust(71, "1"), "size": 1, "annotations": {"org.opencontainers.image.ref.name": "1" * 71}}
    (tmp_path / "one.tar").write_bytes(layer({"index.json": json.dumps({"manifests": [entry]}).encode()}, pack=bytes))
    pull = Pull(root, msgspec.structs.replace(settings, archives=(tmp_path,)), registry)
    assert pull.failure(f"oci-archive://{tmp_path}/one.tar:{'1' * 71}").code == "NotAnImage"


@pytest.mark.parametrize(
    ("challenge", "realm"),
    [
        ('realm="https://a.example/t",service="s",scope="x y"', "https://a.example/t"),
        ("a" * 4000, ""),
        ("a" * 4_000_000, ""),
        ('a="' * 1_000_000, ""),
    ],
    ids=["honest", "a word", "a long word", "quotes"],
)
def test_a_challenge_is_read_in_linear_time(challenge: str, realm: str) -> None:
    """Hours, if a word were read again from each of its letters."""
    assert registry_documents.parameters(challenge).get("realm", "") == realm


def test_a_challenge_of_many_lines_is_refused(fetch: Pull, registry: Registry) -> None:
    registry.refuse = lambda _: Fault(401, {"WWW-Authenticate": "Bearer " + "a" * 5000})
    error = fetch.failure()
    assert (error.code, "4096" in str(error)) == ("NotAuthorized", True)


def test_a_realm_that_cannot_be_read_is_refused(fetch: Pull, registry: Registry) -> None:
    registry.refuse = lambda _: Fault(401, {"WWW-Authenticate": 'Bearer realm="http://[",service="s"'})
    assert fetch.failure().code == "NotAuthorized"
