"""The names of metrics that an expression reads."""

from __future__ import annotations

import pytest

from lakehouse.monitoring import expressions


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("up == 0", {"up"}),
        ("sum by (job, host) (rate(a_total{job=~\"x|by\", host!='y'}[5m])) > bool 1e3", {"a_total"}),
        ("a / on (host) group_left (role) b offset 5m", {"a", "b"}),
        ("sum(a) without (host) unless b and c or d", {"a", "b", "c", "d"}),
        ("histogram_quantile(0.9, sum by (le) (rate(job:a_bucket[1m:10s])))", {"job:a_bucket"}),
        ('label_replace(up, "a", "$1", "b", "(no_metric)")', {"up"}),
        ('{__name__=~"jvm_.*"}', set()),
        ('time() - a{path="{}"} > 3600', {"a"}),
        ("-Inf + 2 * a", {"a"}),
    ],
)
def test_the_names_of_metrics_are_found(expression: str, names: set[str]) -> None:
    assert expressions.metrics(expression) == names
