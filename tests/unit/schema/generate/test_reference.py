"""Reference pages: every field, rule and column of a kind, and links instead of repetitions."""

from typing import Annotated

import msgspec

from paddock.meta.objects import Resource
from paddock.schema.field import Field, Object
from paddock.schema.generate import reference
from paddock.schema.kind import Kind
from tests.golden import Golden
from tests.unit.schema.sample import SAMPLE, Spec


def test_the_whole_page(golden: Golden) -> None:
    golden("sample.md", reference.page(SAMPLE, {}, to_root="../"))


class Template(Object):
    """What is made."""

    spec: Annotated[Spec, Field("The sample that is made.")] = Spec()


class Pool(Resource):
    """Many samples."""

    spec: Annotated[Template, Field("What is wanted.", required=True)] = Template()


POOL = Kind(group="x.dev", kind="Pool", plural="pools", cls=Pool, dialect="sample")
KINDS = (SAMPLE, POOL)
NAMES = reference.file_names(KINDS)


def test_what_another_page_describes_is_a_link() -> None:
    page = reference.page(POOL, reference.links_of(KINDS, NAMES), to_root="../")
    assert "| The sample that is made. See [Sample](sample.md). |" in page
    assert "spec.spec.count" not in page


def test_a_page_never_leads_to_itself() -> None:
    page = reference.page(SAMPLE, reference.links_of(KINDS, NAMES), to_root="../")
    assert "`spec.count`" in page
    assert "See [Sample]" not in page


def test_kinds_of_one_name_have_files_of_their_own() -> None:
    alias = msgspec.structs.replace(SAMPLE, group="old.dev", alias_of=("test.paddock.dev", "Sample"))
    elsewhere = msgspec.structs.replace(SAMPLE, group="third.dev", dialect="other")
    assert reference.file_names((alias, SAMPLE, elsewhere)) == {
        ("test.paddock.dev", "Sample"): "sample",
        ("old.dev", "Sample"): "sample.old.dev",
        ("third.dev", "Sample"): "sample",
    }


def test_a_page_says_what_the_kind_is() -> None:
    alias = msgspec.structs.replace(SAMPLE, alias_of=("new.dev", "Sample"))
    assert "the same objects as `Sample` of `new.dev`" in reference.page(alias, {}, to_root="../")
    assert "created only" in reference.page(msgspec.structs.replace(SAMPLE, stored=False), {}, to_root="../")
    builtin = reference.page(msgspec.structs.replace(SAMPLE, builtin=True), {}, to_root="../")
    assert "a kind of Kubernetes itself" in builtin
    assert "CRD: [" not in builtin


def test_the_index_lists_the_kinds() -> None:
    page = reference.index("sample", "Samples for tests", KINDS, NAMES)
    assert "Samples for tests." in page
    assert "| [Sample](sample.md) | `test.paddock.dev/v1` | A thing that shows everything a declaration can say. |" in page
    assert "| [Pool](pool.md) | `x.dev/v1` | Many samples. |" in page
