"""Progress: a line now and then where nobody watches, and an estimate that knows how much agents differ."""

from __future__ import annotations

import pytest

import driftformer as df
from driftformer.agents.registry import make_agent
from driftformer.evaluation import progress as module
from driftformer.evaluation.evaluate import Task
from driftformer.evaluation.progress import Progress, TimeLeft, in_words, rounds_by_agent
from driftformer.randomness import Chunk

ENVIRONMENT = df.make_env("high")
SECONDS_PER_ROUND = {"random": 1e-6, "linucb": 3e-6, "policy:high": 2e-3}


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def task(agent: str, chunk: int = 0) -> Task:
    return Task(ENVIRONMENT, agent, make_agent(agent), (Chunk(chunk),), 0, "cpu", False)


def test_without_a_terminal_there_is_a_line_after_ten_seconds_and_then_every_thirty(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress({"": 1000}, "collecting", unit="trajectories") as bar:
        for _ in range(99):
            clock.now += 1
            bar.advance(10)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"collecting: {share}% done, {done} of 1,000 trajectories, {left} left"
        for share, done, left in ((10, 100, "about 90 s"), (40, 400, "about 60 s"), (70, 700, "about 30 s"))
    ]


@pytest.mark.parametrize("shown", [True, False])
def test_lines_are_not_for_those_who_want_a_bar_or_silence(
    clock: Clock, capsys: pytest.CaptureFixture[str], shown: bool
) -> None:
    with Progress({"": 1000}, "collecting", shown) as bar:
        clock.now += 60
        bar.advance(500)
    assert "done," not in capsys.readouterr().err


@pytest.mark.parametrize("slower", [1.0, 3.0])
def test_the_estimate_does_not_jump_when_a_slow_agent_follows_fast_ones(clock: Clock, slower: float) -> None:
    """At first it is off by as much as the table is here (policies take twice as long); then it is what is measured."""
    tasks = [task(agent, chunk) for agent in SECONDS_PER_ROUND for chunk in range(10)]
    truth = [one.rounds * SECONDS_PER_ROUND[one.name] * slower for one in tasks]
    bar, guesses = Progress(rounds_by_agent(tasks), "high", shown=False), []
    for place, one in enumerate(tasks):
        for _ in range(4):
            clock.now += truth[place] / 4
            bar.played(one, one.rounds // 4)
        bar.finished(one)
        guesses.append((bar._left.seconds(), sum(truth[place + 1 :])))
    assert guesses[0][0] / guesses[0][1] == pytest.approx(1 / (2 * slower), rel=0.2), "policies are slower than known"
    assert all(guess == pytest.approx(right, rel=0.35) for guess, right in guesses[20:-1])
    assert guesses[-1] == (pytest.approx(0.0), 0)


def test_workers_share_the_work_and_one_that_is_starting_is_not_measured(clock: Clock) -> None:
    work = {"policy:high": 4 * 64 * 200}
    assert TimeLeft(work, 4).seconds() == TimeLeft(work, 1).seconds() / 4
    bar, one = Progress(work, "high", shown=False, workers=4), task("policy:high")
    before = bar._left.seconds()
    clock.now += 1000
    bar.played(one, 64)
    assert bar._left.seconds() == pytest.approx(before, rel=0.01), "the seconds were those of starting"
    clock.now += 64 * 1e-2
    bar.played(one, 64)
    assert bar._left.seconds() > 1.2 * before


def test_times_are_told_in_words_that_claim_no_more_than_is_known() -> None:
    assert [in_words(seconds) for seconds in (4, 99, 600, 9000)] == [
        "about 4 s",
        "about 99 s",
        "about 10 min",
        "about 2.5 h",
    ]


def test_a_wrapped_policy_is_known_to_be_slow() -> None:
    wrapped = TimeLeft({"restart@base=policy:cosine,every=200": 1000}).seconds()
    assert wrapped == TimeLeft({"policy:cosine": 1000}).seconds() > 100 * TimeLeft({"restart": 1000}).seconds()
