"""The inventory of a cluster of many small nodes."""

from __future__ import annotations

import yaml

from lakehouse.dev import scale


def test_added_nodes_have_a_datanode_and_a_spark_worker_and_nothing_else() -> None:
    made = scale.inventory(6, yaml.safe_load((scale.LOCAL / "hosts.yml").read_text(encoding="utf-8")))
    assert list(made["all"]["hosts"]) == [
        "cpu-node1",
        "cpu-node2",
        "worker-node3",
        "added4",
        "added5",
        "added6",
    ]
    holds = {group for group, members in made.items() if group != "all" and "added5" in members["hosts"]}
    assert holds == {"datanodes", "spark_workers"}
    addresses = [host["ansible_host"] for host in made["all"]["hosts"].values()]
    assert len(set(addresses)) == 6
