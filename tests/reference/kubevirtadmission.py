"""What KubeVirt's own webhooks say of the variants in `tests/kit/declarations/kubevirtvariants.py`: one of the programs here runs them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kit.declarations import kubevirtvariants


def verdicts(program: Path) -> dict[str, list[str]]:
    """Return, for each of the settings, the objects that KubeVirt refuses, each with its causes: `NAME: REASON FIELD, ...`."""
    return {name: sorted(_refused(program, gates)) for name, gates in kubevirtvariants.SETTINGS.items()}


def _refused(program: Path, gates: tuple[str, ...]) -> list[str]:
    known = dict(kubevirtvariants.objects())
    lines = "\n".join(json.dumps({"object": each}) for each in known.values())
    ran = subprocess.run([program, *gates], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(known)
    return [f"{name}: {_causes(answer)}" for name, answer in zip(known, answers, strict=True) if not answer["allowed"]]


def _causes(answer: dict[str, Any]) -> str:
    causes = {f"{each['reason']} {each.get('field', '')}".strip() for each in answer.get("causes") or ()}
    return ", ".join(sorted(causes - {""})) or "-"


def recorded(told: dict[str, list[str]]) -> str:
    """Return the verdicts as they are kept."""
    lines = ["# Generated: what KubeVirt's webhooks refuse of variants.yaml, and the causes; `pytest ... --golden-update` asks again."]
    for name, refused in told.items():
        lines += [f"{name}:", *(f"- {json.dumps(each)}" for each in refused)]
    return "\n".join(lines) + "\n"
