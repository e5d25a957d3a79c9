"""Reference pages: every field, rule and column of a kind, and links instead of repetitions."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec

from paddock.kubernetes import catalog
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.generate import reference
from paddock.kubernetes.schema.kind import Kind
from tests.golden import Golden
from tests.unit.kubernetes.schema.sample import SAMPLE, Spec


def test_the_whole_page(golden: Golden) -> None:
    golden("sample.md", page_of(SAMPLE, [SAMPLE]))


def page_of(kind: Kind, kinds: Sequence[Kind]) -> str:
    pages = reference.pages_of(kinds, reference.file_names(kinds), ())
    path = next(path for path, described in pages.items() if kind in described)
    return reference.page(reference.texts(path, pages, reference.homes_of(kinds)))


class Template(Object):
    """What is made."""

    spec: Annotated[Spec, Field("The sample that is made.")] = Spec()


class PoolStatus(Object):
    """What was observed of the samples."""

    last: Annotated[Template, Field("What was made last.")] = Template()


class Pool(Resource):
    """Many samples."""

    spec: Annotated[Template, Field("What is wanted.", required=True)] = Template()
    status: Annotated[PoolStatus, Field("What was observed.")] = PoolStatus()


POOL = Kind(group="x.dev", kind="Pool", plural="pools", cls=Pool, dialect="sample")
KINDS = (SAMPLE, POOL)


def test_what_another_page_describes_is_a_link() -> None:
    page = page_of(POOL, KINDS)
    assert "| The sample that is made. See [Sample](sample.md). |" in page
    assert "spec.spec.count" not in page


def test_what_the_same_page_describes_is_named() -> None:
    page = page_of(POOL, [POOL])
    assert "`spec.spec.count`" in page
    assert "| What was made last. It has the fields of `spec`. |" in page
    assert "status.last.spec" not in page


def test_a_home_is_never_below_another_one() -> None:
    kinds = catalog.every()
    homes = reference.homes_of(kinds)
    pages = reference.pages_of(kinds, reference.file_names(kinds), ())
    described: Counter[tuple[str, str, str]] = Counter()
    for path in pages:
        for kind_text in reference.texts(path, pages, homes):
            described.update(
                (kind_text.kind.group, kind_text.kind.kind, place) for place, _ in reference.objects(kind_text.kind, kind_text)
            )
    assert {(home.kind.group, home.kind.kind, home.path) for home in homes.values()} <= described.keys()


def test_a_page_never_leads_to_itself() -> None:
    page = page_of(SAMPLE, KINDS)
    assert "`spec.count`" in page
    assert "See [Sample]" not in page


def test_kinds_with_one_spec_share_a_page() -> None:
    twin = msgspec.structs.replace(SAMPLE, kind="ClusterSample", plural="clustersamples")
    page = page_of(twin, [SAMPLE, twin])
    assert page.startswith("# Sample and ClusterSample\n")
    assert "| What is wanted. See [Sample](#sample). |" in page.partition("\n## ClusterSample\n")[2]


def test_rules_of_another_kind_are_a_link() -> None:
    rules = tuple(msgspec.structs.replace(SAMPLE.rules[0], id=f"sample/{number}") for number in range(5))
    whole, part = msgspec.structs.replace(POOL, rules=(*SAMPLE.rules, *rules)), msgspec.structs.replace(SAMPLE, rules=rules)
    page = page_of(whole, [part, whole])
    assert "The rules of [Sample](sample.md) hold here, too." in page
    assert "`sample/0`" not in page
    assert f"`{SAMPLE.rules[0].id}`" in page
    assert "hold here" not in page_of(part, [part, whole])


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
    assert "the same objects as `Sample` of `new.dev`" in page_of(alias, [alias])
    once = msgspec.structs.replace(SAMPLE, stored=False)
    assert "created only" in page_of(once, [once])
    builtin_kind = msgspec.structs.replace(SAMPLE, builtin=True)
    builtin = page_of(builtin_kind, [builtin_kind])
    assert "a kind of Kubernetes itself" in builtin
    assert "CRD: [" not in builtin


def test_the_index_lists_the_kinds() -> None:
    pages = reference.pages_of(KINDS, reference.file_names(KINDS), ())
    page = reference.index("sample", "Samples for tests", KINDS, reference.addresses(pages, "sample/README.md"))
    assert "Samples for tests." in page
    assert "| [Sample](sample.md) | `test.paddock.dev/v1` | A thing that shows everything a declaration can say. |" in page
    assert "| [Pool](pool.md) | `x.dev/v1` | Many samples. |" in page
