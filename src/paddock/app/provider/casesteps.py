"""Runs the cases of a conformance spec on a server: every step for real, and the cleanup whatever happens."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.contract.conformance.results import CaseNotApplicable, CaseResult, ConformanceFailure, SuiteResult
from paddock.dialects.virtrigaud.plan.cases import judging
from paddock.dialects.virtrigaud.plan.cases.document import CAPABILITIES, CaseStep, LifecycleCase, WaitCondition
from paddock.kubernetes import catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target, plain

_LOOK_SECONDS = 0.5
_CLEANUP_SECONDS = 300.0
_PROVIDERS = plain("infra.virtrigaud.io", "v1beta1", "providers", "Provider")
_MACHINE = "VirtualMachine"
Place = tuple[Target[Data], Key]


class CaseRun:
    def __init__(self, client: Client, namespace: str, case: LifecycleCase) -> None:
        self._client = client
        self._namespace = namespace
        self._case = case
        self._about: Data = {}
        # what it made, in order
        self._made: list[Place] = []

    async def run(self) -> None:
        """Carry the steps out, one after the other; raise `ConformanceFailure` or `CaseNotApplicable`."""
        try:
            async with asyncio.timeout(self._case.seconds):
                await self._require()
                for step in self._case.steps:
                    await self._step(step)
        except TimeoutError:
            raise ConformanceFailure(f"the case took longer than {self._case.timeout or '30m'}") from None

    async def clean(self) -> list[str]:
        """Delete what is left, machines before what they need; returns what stays."""
        with contextlib.suppress(PaddockError):
            for resource in (step.resource for step in self._case.cleanup if step.resource is not None):
                place = self._place(resource)
                if place in self._made:
                    await self._delete(place)
        for place in sorted(self._made, key=lambda each: each[0].kind != _MACHINE):
            with contextlib.suppress(PaddockError):
                await self._delete(place)
        left: list[str] = []
        for target, key in self._made:
            try:
                async with asyncio.timeout(_CLEANUP_SECONDS):
                    while await self._client.find(target, key) is not None:
                        await asyncio.sleep(_LOOK_SECONDS)
            except (TimeoutError, PaddockError):
                left.append(f"{target.kind} {key}")
        return left

    async def _require(self) -> None:
        """Skip a case that needs what its Provider, as far as it is there already, does not report."""
        machine = next((each.resource for each in self._case.steps if each.resource and each.resource["kind"] == _MACHINE), None)
        ref = (machine or {}).get("spec", {}).get("providerRef") or {}
        if not ref.get("name"):
            return
        found = await self._client.find(_PROVIDERS, Key(ref.get("namespace") or self._namespace, ref["name"]))
        reported = ((found or {}).get("status") or {}).get("reportedCapabilities")
        if reported is None:
            return
        lacking = [each for each in self._case.requiredCapabilities if CAPABILITIES[each] and not reported.get(CAPABILITIES[each])]
        if lacking:
            raise CaseNotApplicable(f"Provider {ref['name']} does not report {', '.join(lacking)}")

    async def _step(self, step: CaseStep) -> None:
        self._about = step.resource or self._about
        place = self._place(self._about)
        try:
            async with asyncio.timeout(step.seconds):
                match step.type:
                    case "create":
                        await self._client.create(place[0], self._body(self._about))
                        self._made.append(place)
                    case "update":
                        change = {name: value for name, value in self._about.items() if name in ("spec", "metadata")}
                        await self._client.patch(place[0], place[1], merge_patch(change))
                    case "delete":
                        await self._client.delete(place[0], place[1])
                if step.waitFor is not None:
                    await self._wait(step.waitFor.condition, place)
                await self._validate(step, place)
        except TimeoutError:
            seen = judging.described(await self._client.find(*place))
            wanted = step.waitFor.condition if step.waitFor is not None else step.type
            raise ConformanceFailure(f"step {step.name}: {_title(place)} is not {wanted} after {step.seconds:g} s", why=seen) from None
        except (ConformanceFailure, CaseNotApplicable):
            raise
        except PaddockError as error:
            raise ConformanceFailure(f"step {step.name}: cannot {step.type} {_title(place)}", why=str(error)) from error

    async def _wait(self, condition: WaitCondition, place: Place) -> None:
        while not judging.holds(condition, await self._client.find(*place)):
            await asyncio.sleep(_LOOK_SECONDS)

    async def _validate(self, step: CaseStep, place: Place) -> None:
        """A validation holds at once; beside another step, within the time of the step."""
        while step.validate:
            found = await self._client.find(*place)
            if found is None:
                raise ConformanceFailure(f"step {step.name}: {_title(place)} is not there")
            problems = [each for each in (judging.problem(check, found) for check in step.validate) if each]
            if not problems:
                return
            if step.type == "validate":
                raise ConformanceFailure(f"step {step.name}: {_title(place)}: {'; '.join(problems)}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _delete(self, place: Place) -> None:
        with contextlib.suppress(NotFound):
            await self._client.delete(*place)

    def _body(self, resource: Data) -> Data:
        metadata: dict[str, Any] = {"namespace": self._namespace, **resource["metadata"]}
        return {**resource, "metadata": metadata}

    def _place(self, resource: Data) -> Place:
        group, _, version = resource["apiVersion"].rpartition("/")
        kind = catalog.find(group, resource["kind"])
        if kind is None:
            raise ConformanceFailure(f"{resource['kind']} of {resource['apiVersion']} is none of the kinds that Paddock knows")
        target = plain(group, version, kind.plural, kind.kind, namespaced=kind.namespaced)
        metadata = resource["metadata"]
        return target, Key((metadata.get("namespace") or self._namespace) if kind.namespaced else "", metadata["name"])


def _title(place: Place) -> str:
    return f"{place[0].kind} {place[1]}"


async def judge(
    client: Client, namespace: str, cases: Sequence[LifecycleCase], observe: Callable[[CaseResult], None] = lambda _: None
) -> SuiteResult:
    """Run cases one after the other."""
    results: list[CaseResult] = []
    leftovers: list[str] = []
    loop = asyncio.get_running_loop()
    for case in cases:
        began, run = loop.time(), CaseRun(client, namespace, case)
        result = CaseResult(name=case.name, status="passed")
        try:
            await run.run()
        except CaseNotApplicable as error:
            result = CaseResult(name=case.name, status="skipped", reason=str(error))
        except ConformanceFailure as error:
            result = CaseResult(name=case.name, status="failed", reason=str(error))
        finally:
            leftovers += await run.clean()
        results.append(CaseResult(name=case.name, status=result.status, reason=result.reason, seconds=loop.time() - began))
        observe(results[-1])
    return SuiteResult(results=tuple(results), leftovers=tuple(leftovers))
