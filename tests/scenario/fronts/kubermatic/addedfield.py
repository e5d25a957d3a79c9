"""Run by test_added_field, with a copy of the program whose DataSource has the field `tint`."""

from pathlib import Path

from tests import virtualtime
from tests.coroutines import run_by
from tests.scenario.fronts.kubermatic.clusters import Cluster
from tests.scenario.fronts.kubermatic.making import URL, machine, settle, source


@run_by(virtualtime.run)
async def test_an_event_names_the_field(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as it:
        it.host.engine.images.offer(URL)
        tinted = source()
        await it.write({**tinted, "spec": {**tinted["spec"], "tint": "red"}}, machine())
        await settle(60)
        found = (await it.front.get("/api/v1/namespaces/default/events")).data["items"]
        (note,) = {each["message"] for each in found if each["reason"] == "FieldsIgnored"}
        assert "DataSource/image: spec.tint" in note
