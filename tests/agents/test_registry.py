"""Agents by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftformer.agents.linucb import LinUCB
from driftformer.agents.registry import full_label, label, make_agent
from driftformer.errors import InputError


@given(alpha=st.floats(0, 1e6), ridge=st.floats(1e-3, 1e6))
def test_a_label_reads_back_as_the_same_agent(alpha: float, ridge: float) -> None:
    agent = LinUCB(alpha=alpha, ridge=ridge)
    assert make_agent(label(agent)) == agent == make_agent(full_label(agent))


@pytest.mark.parametrize(
    "spec",
    [
        "master@base=linucb+alpha=2.0,test_scale=0.03",
        "master@base=restart+base=linucb++alpha=2.0++ridge=0.5+every=9,c1=2.0",
        "master@base=master+base=master++base=thompson+++variance=1.0++c2=0.5+c1=3.0",
    ],
)
def test_wrapped_agents_read_back_at_any_depth(spec: str) -> None:
    agent = make_agent(spec)
    assert label(agent) == spec
    assert make_agent(full_label(agent)) == agent


def test_options_come_from_text_or_keywords() -> None:
    assert make_agent("linucb@alpha=2,ridge=0.5") == make_agent("linucb", alpha=2, ridge=0.5) == LinUCB(2.0, 0.5)
    assert full_label(LinUCB(alpha=2)) == full_label(make_agent("linucb@alpha=2.0")) == "linucb@alpha=2.0,ridge=1.0"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("linubc", "agent: there is no 'linubc'; did you mean 'linucb'?"),
        ("linucb@alhpa=2", "agent 'linucb', option: there is no 'alhpa'; did you mean 'alpha'?"),
        ("linucb@alpha=two", "agent 'linucb': alpha is 'two'; give a float"),
        ("linucb@alpha", "agent 'linucb@alpha': 'alpha' is not an option; write name@option=value"),
        ("linucb@", "agent 'linucb@': '' is not an option; write name@option=value"),
        ("linucb@alpha=1,alpha=2", "option alpha is given twice; give it once"),
        ("linucb@alpha=-1", "alpha is -1.0; give a finite number of at least 0"),
        ("linucb@alpha=nan", "alpha is nan; give a finite number of at least 0"),
        ("oracle@explore=greedy", "explore: there is no 'greedy'; choose from thompson, ucb"),
        ("random@seed=1", "agent 'random', option: there is no 'seed'"),
    ],
)
def test_a_bad_name_or_option_says_what_to_write(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_agent(spec)
    assert message in str(caught.value)
