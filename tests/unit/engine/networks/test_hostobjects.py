"""The mark that says whose a table of the packet filter is."""

from pathlib import Path

import pytest

from paddock.engine.networks import hostobjects, rules


@pytest.mark.parametrize(
    ("directory", "mark"),
    [
        ("/srv/paddock", "paddock /srv/paddock"),
        ("/srv/my machines", "paddock /srv/my machines"),
        ('/srv/"x"', ""),
        ("/srv/a\\b", ""),
        ("/srv/a\nb", ""),
        ("/srv/" + "a" * 114, "paddock /srv/" + "a" * 114),
        ("/srv/" + "a" * 115, ""),
        ("/srv/" + "ä" * 60, ""),
    ],
)
def test_the_mark_is_one_that_nft_takes(directory: str, mark: str) -> None:
    assert hostobjects.mark_of_filters(Path(directory)) == mark


def test_a_table_says_whose_it_is_and_which_users_it_holds() -> None:
    found = hostobjects._GUARD.search(rules.guard_processes("paddock_x", (2_000_262_144, 2_000_312_144), "paddock /srv/my machines"))
    assert found is not None and found.groups() == ("2000262144", "2000312144", "/srv/my machines")
    assert hostobjects._GUARD.search(rules.guard_processes("paddock_x", (2_000_262_144, 2_000_312_144))) is None
