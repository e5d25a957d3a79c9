"""The table of a machine here and on a cluster."""

from tools.bench.cluster import Measured, text


def test_table() -> None:
    """Middle values, a ratio where both are more than noise, and at the end what only the cluster has."""
    ours, theirs = Measured(load=1.0), Measured(load=2.0)
    for value in (1.0, 9.0, 2.0):
        ours.add("seconds", value)
    theirs.add("seconds", 8.0)
    ours.add("memory", -0.5)
    theirs.add("memory", 100.0)
    theirs.add("etcd", 3.0)
    assert text(ours, theirs).splitlines() == [
        "load 1.0 and 2.0",
        "figure   paddock up  KubeVirt  ratio",
        "seconds  2           8         1/4.0",
        "memory   -0.5        100",
        "etcd                 3",
    ]
