"""Variables are evaluated once, and mean what Ansible means by them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from lakehouse.model import evaluation


def trusted(value: Any) -> Any:
    """As a file of variables is read: each text may be a template."""
    if isinstance(value, dict):
        return {key: trusted(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [trusted(entry) for entry in value]
    return trust_as_template(value) if isinstance(value, str) else value


def evaluated(value: Any, **variables: Any) -> Any:
    known = trusted(variables)
    return evaluation.evaluated(trusted(value), Templar(loader=DataLoader(), variables=known), known)


def test_a_value_is_what_ansible_makes_of_it() -> None:
    variables = {"root": "/data", "dirs": ["{{ root }}/a", "{{ root }}/b"], "table": {"size": "{{ 2 * 3 }}"}}
    value = [{"dest": "{{ dirs | last }}", "size": "{{ table.size }}", "text": "{{ table.size }} MiB"}]
    assert evaluated(value, **variables) == [{"dest": "/data/b", "size": 6, "text": "6 MiB"}]


def test_a_variable_that_many_name_is_evaluated_once() -> None:
    number = "{{ range(1, 10**12) | random }}"
    first, second, third = evaluated(
        ["{{ a }}", "{{ b }}", "{{ number }}"], number=number, a="{{ number }}", b="{{ a }}"
    )
    assert first == second == third


def test_a_branch_that_is_not_taken_may_name_what_cannot_be_evaluated() -> None:
    assert (
        evaluated("{{ broken if wanted else 'fine' }}", wanted=False, broken="{{ nobody_knows }}") == "fine"
    )


def test_a_branch_that_is_taken_fails_with_the_name() -> None:
    with pytest.raises(AnsibleUndefinedVariable, match="nobody_knows"):
        evaluated("{{ broken }}", broken="{{ nobody_knows }}")


def test_a_variable_that_names_itself_is_an_error_and_no_endless_loop() -> None:
    with pytest.raises(Exception, match=r"[Rr]ecursi"):
        evaluated("{{ one }}", one="{{ other }}", other="{{ one }}")


def test_a_result_is_no_template() -> None:
    assert evaluated("{{ text }}", text="{{ '{{' ~ ' 1 + 1 ' ~ '}}' }}") == "{{ 1 + 1 }}"
