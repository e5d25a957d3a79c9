"""The annotations that change a simulated guest."""

import pytest

from paddock.engine.simulated.behaviour import PREFIX, Behaviour, import_failure, read


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("start-seconds", "2.5", Behaviour(start=2.5)),
        ("boot-seconds", "0", Behaviour(boot=0.0)),
        ("shutdown-seconds", "3", Behaviour(shutdown=3.0)),
        ("agent", "absent", Behaviour(agent=False)),
        ("agent", "present", Behaviour()),
        ("power-button", "ignored", Behaviour(obeys_power=False)),
        ("start-failure", " no luck ", Behaviour(start_failure="no luck")),
        ("panic-after", "1", Behaviour(panic_after=1.0)),
        ("crash-after", "1", Behaviour(crash_after=1.0)),
        ("shutdown-after", "1", Behaviour(shutdown_after=1.0)),
        ("reboot-after", "1", Behaviour(reboot_after=1.0)),
        ("migration-seconds", "1", Behaviour(migration=1.0)),
        ("migration-failure", "no luck", Behaviour(migration_failure="no luck")),
    ],
)
def test_an_annotation_changes_one_thing(name: str, text: str, wanted: Behaviour) -> None:
    assert read({PREFIX + name: text, "other.dev/agent": "absent"}) == wanted


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("boot-second", "1", "is unknown; known after"),
        ("boot-seconds", "soon", "write a number of seconds"),
        ("boot-seconds", "-1", "write a number of seconds"),
        ("boot-seconds", "nan", "write a number of seconds"),
        ("agent", "no", "write present or absent"),
        ("power-button", "", "write obeyed or ignored"),
        ("start-failure", " ", "write the reason"),
    ],
)
def test_one_without_a_meaning_is_an_error(name: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read({PREFIX + name: text})


@pytest.mark.spec("kubevirt", 243)
@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, ""),
        ({"example.com/import-failure": "x"}, ""),
        ({f"{PREFIX}import-failure": " the mirror is down "}, "the mirror is down"),
        ({f"{PREFIX}import-failure": " "}, f"the annotation {PREFIX}import-failure gives no reason"),
        (
            {f"{PREFIX}import-failure": "x", f"{PREFIX}agent": "absent"},
            f"the annotation {PREFIX}agent means nothing on a claim; known there is {PREFIX}import-failure",
        ),
    ],
)
def test_an_import_fails_as_its_claim_says(annotations: dict[str, str], wanted: str) -> None:
    assert import_failure(annotations) == wanted
