"""The requests of an operator to a real API server, from the server's audit log, beside the rights that its chart grants."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.reference.client import Json

# RIGHTS_SEED=n takes other rights away.
SEED = int(os.environ.get("RIGHTS_SEED", "1"))


class Right(NamedTuple):
    """A verb on a resource, or on a subresource."""

    group: str
    resource: str
    verb: str


@dataclass(frozen=True)
class Audited:
    """The requests that the server allowed and refused."""

    allowed: frozenset[Right]
    refused: frozenset[Right]


def auditing(directory: Path, account: str) -> Sequence[str]:
    """Return the flags with which kube-apiserver notes the requests of an account into `audit.log` of a directory."""
    rules = [{"level": "Metadata", "users": [account], "omitStages": ["RequestReceived"]}, {"level": "None"}]
    policy = directory / "audit.yaml"
    policy.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    # In blocking mode, a request that was answered is in the log.
    return (f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.log'}", "--audit-log-mode=blocking")


def audited(log: Path, start: int = 0) -> Audited:
    """Return what an audit log says from a place on."""
    allowed: set[Right] = set()
    refused: set[Right] = set()
    for line in log.read_bytes()[start:].splitlines() if log.exists() else ():
        found = json.loads(line)
        place, code = found.get("objectRef") or {}, (found.get("responseStatus") or {}).get("code", 0)
        if not place.get("resource"):
            continue
        resource = "/".join(filter(None, (place["resource"], place.get("subresource", ""))))
        right = Right(place.get("apiGroup", ""), resource, found["verb"])
        (refused if code == 403 else allowed).add(right)
        if found["verb"] == "patch" and code == 201:
            # To apply an object that is not there needs the right to create it.
            allowed.add(right._replace(verb="create"))
    return Audited(frozenset(allowed), frozenset(refused))


def granted(objects: Sequence[Json]) -> Iterator[Right]:
    """Yield the rights that roles grant."""
    for each in objects:
        for rule in each.get("rules") or ():
            # What readers of the metrics may is about no resource.
            for group in rule.get("apiGroups", ()):
                for resource in rule["resources"]:
                    yield from (Right(group, resource, verb) for verb in rule["verbs"])


def is_asked_otherwise(right: Right) -> bool:
    """Return whether a server's log cannot show that a right is used: the admission of owners, and lists where watches bring them."""
    return right.resource.endswith("/finalizers") or right.verb == "list"


def without(objects: Sequence[Json], right: Right) -> Sequence[Json]:
    """Return roles that grant all but one right."""
    return [{**each, "rules": list(_but(each["rules"], right))} if "rules" in each else each for each in objects]


def _but(rules: Sequence[Json], right: Right) -> Iterator[Json]:
    for rule in rules:
        if right.group not in rule.get("apiGroups", ()) or right.resource not in rule["resources"]:
            yield rule
            continue
        others = [each for each in rule["resources"] if each != right.resource]
        verbs = [each for each in rule["verbs"] if each != right.verb]
        # Rules without resources or verbs are invalid.
        yield from [{**rule, "resources": others}] if others else []
        yield from [{**rule, "resources": [right.resource], "verbs": verbs}] if verbs else []
