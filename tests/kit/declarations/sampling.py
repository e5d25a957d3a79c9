"""The number of examples of a costly property test: a part of them in an ordinary run, all of them in `make soak`."""

from hypothesis import settings

SOAK = "soak"
_LEAST = 5


def is_soak() -> bool:
    """Return whether this run is `make soak`."""
    return settings.get_current_profile_name() == SOAK


def one_in(part: int) -> settings:
    """Return settings with one in so many of the profile's examples, and with all of them in `make soak`."""
    most = settings().max_examples
    return settings(max_examples=most if is_soak() else max(_LEAST, most // part))
