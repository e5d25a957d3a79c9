"""A power state such as `On`, which kubectl makes a boolean of: apply merges by types, so it is a word before it is merged."""

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubernetes.schema.messages import bare_word
from paddock.server.resources.strategy import CustomStrategy

_WORDS = {True: "On", False: "Off"}


class PowerStateStrategy(CustomStrategy):
    """A kind with a power state."""

    def __init__(self, path: Path) -> None:
        self._place = path

    def appliable(self, config: Data, said: list[str]) -> Data:
        """A boolean is what kubectl made of a word."""
        given = fieldpath.value_at(config, self._place)
        if isinstance(given, bool):
            *way, last = self._place
            around = fieldpath.value_at(config, tuple(way))
            around[last] = _WORDS[given]
            said.append(f"{format_path(self._place)}: {bare_word(_WORDS[given])}")
        return config


def strategies() -> dict[tuple[str, str], CustomStrategy]:
    """The strategies of the kinds that have one."""
    return {kind: PowerStateStrategy(place) for dialect in catalog.every_dialect() for kind, place in dialect.power_words.items()}
