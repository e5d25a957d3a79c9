"""The embedded server as these tests start it: ready when it says so, on the same address with the same objects after a restart."""

from pathlib import Path

import pytest

from tests.reference.client import Api
from tests.reference.embedded import serving
from tests.reference.server import StartFailed

pytestmark = pytest.mark.reference


def test_what_was_stored_is_there_after_a_restart_on_the_same_address(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as server:
        before = server.access
        api = Api(before)
        assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}}).status == 201
        server.restart()
        assert server.access == before
        assert api.request("GET", "/api/v1/namespaces/kept").ok
        assert server.kubeconfig.stat().st_mode & 0o077 == 0
        api.close()


def test_users_are_those_of_the_lines(tmp_path: Path) -> None:
    with serving(tmp_path / "server", users=["secret,carol,7,"]) as server:
        api = Api(server.access)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        said = api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, headers={"Authorization": "Bearer secret"})
        assert said.body["status"]["userInfo"]["username"] == "carol"
        api.close()


def test_a_server_that_does_not_come_up_shows_why(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="--no-such-option"), serving(tmp_path / "server", "--no-such-option"):
        pass
