"""The messages of `paddock.provider.v1.Extensions`, which stands beside `provider.v1` (docs/design/0017-provider-contract.md)."""

from typing import Annotated

from paddock.contract.messages import ObjectIdentity, WireField, WireMessage

# Bytes of standard output, and of standard error, that an answer to Exec has at most.
MOST_OUTPUT = 64 << 10


class GetFeaturesRequest(WireMessage):
    """Ask which of the features a provider has."""


class GetFeaturesResponse(WireMessage):
    """Names of `features`; unknown ones mean nothing."""

    features: Annotated[tuple[str, ...], WireField(1)] = ()


class ExecRequest(WireMessage):
    """Run a command in a guest, without a shell. The call of one that takes longer than the timeout is an error."""

    vm_id: Annotated[str, WireField(1)] = ""
    command: Annotated[tuple[str, ...], WireField(2, secret=True)] = ()
    # 0: as long as the call's deadline
    timeout_seconds: Annotated[int, WireField(3, bits=32)] = 0
    owner: Annotated[ObjectIdentity | None, WireField(4)] = None
    target_host_id: Annotated[str, WireField(5)] = ""


class ExecResponse(WireMessage):
    """The end of a command. A command that could not be started is an error of the call."""

    exit_code: Annotated[int, WireField(1, bits=32)] = 0
    # the beginning of each, MOST_OUTPUT bytes
    stdout: Annotated[bytes, WireField(2, secret=True)] = b""
    stderr: Annotated[bytes, WireField(3, secret=True)] = b""
    # more was written than is here
    truncated: Annotated[bool, WireField(4)] = False


class ImageDeleteRequest(WireMessage):
    """Delete a prepared image, as ImagePrepare has named it, or an imported disk that no machine has. One that is gone is deleted."""

    image_id: Annotated[str, WireField(1)] = ""
    image_path: Annotated[str, WireField(2)] = ""


class TransferDeleteRequest(WireMessage):
    """Delete what an ExportDisk has left at a staging backend, with the members of the ImportDisk that reads it."""

    source_url: Annotated[str, WireField(1, secret=True)] = ""
    credentials: Annotated[dict[str, str], WireField(2, secret=True)] = {}
    backend_type: Annotated[str, WireField(3)] = ""
    transfer_mode: Annotated[str, WireField(4)] = ""
    storage_options_json: Annotated[str, WireField(5)] = ""


class ListDatastoresRequest(WireMessage):
    """Ask for the datastores: those of one storage pod, or all."""

    pod: Annotated[str, WireField(1)] = ""


class DatastoreInfo(WireMessage):
    """A datastore, by the name that a machine's placement takes."""

    name: Annotated[str, WireField(1)] = ""
    # empty: it belongs to none
    pod: Annotated[str, WireField(2)] = ""
    free_bytes: Annotated[int, WireField(3)] = 0
    total_bytes: Annotated[int, WireField(4)] = 0
    accessible: Annotated[bool, WireField(5)] = False
    maintenance: Annotated[bool, WireField(6)] = False


class ListDatastoresResponse(WireMessage):
    datastores: Annotated[tuple[DatastoreInfo, ...], WireField(1)] = ()
