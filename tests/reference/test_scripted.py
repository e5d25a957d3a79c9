"""One generated script, spoken to the embedded server and to a kube-apiserver: the same codes, reasons, causes and objects.

What differs and is left so stands in `scripted/differences.toml`, with the reason. A difference that is not explained there fails the
test and prints its line; so does an entry that nothing shows any more. `PADDOCK_SCENES` makes the script longer and
`PADDOCK_SCENES_FROM` starts it elsewhere (see `make soak`).
"""

import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.reference.client import Api
from tests.reference.embedded import Embedded
from tests.reference.scripted import generating
from tests.reference.scripted.comparing import Explained, differences, explained, unexplained
from tests.reference.scripted.playing import Player
from tests.reference.scripted.script import Scene

FIRST = int(os.environ.get("PADDOCK_SCENES_FROM", "1"))
SCENES = int(os.environ.get("PADDOCK_SCENES", "160"))
# So many scenes show what is explained; fewer may not show all of it.
ENOUGH = 160
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ESTABLISHING_SECONDS = 30.0


@pytest.fixture(scope="module")
def pair(embedded: Embedded, api: Api) -> Iterator[tuple[Api, Api]]:
    """The embedded server and the other one, both with the kinds of the scripts."""
    ours = Api(embedded.access)
    for server in (ours, api):
        for definition in generating.definitions():
            made = server.request("POST", DEFINITIONS, definition)
            assert made.ok, made.message
            _wait_served(server, definition)
    yield ours, api
    ours.close()


def _wait_served(server: Api, definition: generating.Words) -> None:
    spec = definition["spec"]
    deadline = time.monotonic() + ESTABLISHING_SECONDS
    for version in spec["versions"]:
        while not server.request("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}").ok:
            assert time.monotonic() < deadline, f"{spec['names']['plural']} is not served"
            time.sleep(0.1)


def test_both_say_the_same(pair: tuple[Api, Api]) -> None:
    known = explained()
    lines: Counter[str] = Counter()
    steps = 0
    for seed in range(FIRST, FIRST + SCENES):
        scene = generating.Author(seed).scene()
        steps += _play(scene, pair, known, lines)
    print(f"{steps} requests in {SCENES} scenes")
    assert not lines, "\n".join(["differences that nothing explains:", *(f"{count} x {line}" for line, count in lines.most_common())])
    if SCENES >= ENOUGH and FIRST == 1:
        unseen = [each.line for each in known if not each.seen]
        assert not unseen, "\n".join(["explanations of what nobody sees:", *unseen])


def _play(scene: Scene, pair: tuple[Api, Api], known: list[Explained], lines: Counter[str]) -> int:
    """Says a scene to both until they stand apart: what follows a disagreement says nothing."""
    ours, theirs = (Player(each) for each in pair)
    for server in pair:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace}}
        server.request("POST", "/api/v1/namespaces", namespace)
    for number, step in enumerate(scene.steps):
        mine, other = ours.play(step), theirs.play(step)
        found = differences(step, mine, other)
        lines.update(f"{each} (scene {scene.namespace}, step {number})" for each in unexplained(found, known))
        if found and (mine.status < 300) != (other.status < 300):
            return number + 1
    return len(scene.steps)
