"""Archives that somebody sent: what is refused is named as it stands in the archive, and nothing of this host is told."""

import io
import tarfile
from pathlib import Path

import pytest

from paddock.engine.storage import archives
from paddock.engine.storage.errors import NotAllowed


@pytest.mark.parametrize(
    ("name", "kind", "target", "why"),
    [
        ("../../escape", tarfile.REGTYPE, "", "'../../escape' leads out of the volume"),
        ("link", tarfile.SYMTYPE, "/etc/passwd", "'link' is a link to an absolute name"),
        ("link", tarfile.SYMTYPE, "../../../secret", "'link' is a link that leads out of the volume"),
        ("pipe", tarfile.FIFOTYPE, "", "'pipe' is a device"),
    ],
)
def test_what_leads_out_is_refused_without_a_word_about_the_host(tmp_path: Path, name: str, kind: bytes, target: str, why: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    with tarfile.open(tmp_path / "sent.tar", "w") as tar:
        tar.addfile(member, io.BytesIO())
    (tmp_path / "volume").mkdir()
    with pytest.raises(NotAllowed) as refused:
        archives.unpack(tmp_path / "sent.tar", tmp_path / "volume", 1 << 20)
    assert why in str(refused.value) and str(tmp_path) not in str(refused.value)
    assert list((tmp_path / "volume").iterdir()) == []
