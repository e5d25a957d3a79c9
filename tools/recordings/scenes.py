"""The scenes that the documents show."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """Commands to show, and commands to run before and after them that nobody sees."""

    name: str
    title: str
    commands: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    columns: int = 88
    lines: int = 24


SCENES = (
    Scene(
        "first-machine",
        "From nothing to a command in a guest, without KVM",
        (
            "paddock up --detach",
            "paddock run tiny -n web",
            "paddock ls",
            "paddock exec web -- uname -sr",
            "paddock why web",
            "paddock rm --purge --yes web",
        ),
        before=(
            # Without a key, `paddock run` says how to get one.
            "mkdir -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519",
            "paddock image build tiny",
            # The first start of a directory in a terminal asks a question.
            "paddock up --detach",
            "paddock down",
        ),
        after=("paddock down --purge --delete-data --yes",),
    ),
    Scene(
        "manifests",
        "Manifests are checked and translated without a server",
        (
            "grep -n -A2 cpu: web.yaml",
            "paddock validate web.yaml || true",
            "sed -i s/coers/cores/ web.yaml",
            "paddock validate web.yaml",
            "paddock convert web.yaml --to vitistack | head -14",
        ),
        before=('sed s/cores:/coers:/ "$(paddock examples --dialect stakater --list | grep minimal)" > web.yaml',),
    ),
)
