"""Figures: one look, the same file each time."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import driftformer as df
from driftformer.errors import InputError
from driftformer.plots.contrast import DARK, LIGHT, TEXT, contrast, seen_on
from driftformer.plots.curves import Column, curves, draw_grid, fill
from driftformer.plots.style import COLOURS, Picture, drawn, looks_of


@pytest.fixture(scope="module")
def result() -> df.Result:
    return df.evaluate(df.make_env("high", horizon=20), ["random", "linucb", "linucb@alpha=2", "oracle"], runs=64)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("kind", ["regret", "suboptimality"])
def test_the_same_result_draws_the_same_file(result: df.Result, tmp_path: Path, ending: str, kind: str) -> None:
    for name in ("one", "two"):
        result.plot(tmp_path / f"{name}.{ending}", kind)
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_a_figure_names_its_axes_agents_and_setting(result: df.Result, tmp_path: Path) -> None:
    result.plot(tmp_path / "regret.svg")
    # glyphs are drawn as paths; matplotlib keeps each text as a comment beside its glyphs
    page = (tmp_path / "regret.svg").read_text()
    ElementTree.fromstring(page)
    for text in ("round t", "cumulative dynamic regret", "linucb@alpha=2", "oracle", "high: b=0.018"):
        assert text in page


def test_several_evaluations_share_one_figure(result: df.Result, tmp_path: Path) -> None:
    columns = [Column(title, result.summary, ["random", "oracle"]) for title in ("left", "right")]
    draw_grid(columns, tmp_path / "grid.svg")
    page = (tmp_path / "grid.svg").read_text()
    assert page.count("<!-- left (64 problems) -->") == page.count("<!-- right (64 problems) -->") == 1
    assert page.count("<!-- oracle -->") == 1, "one legend for all"
    assert "<!-- linucb -->" not in page


def test_many_rounds_are_drawn_in_stretches_and_end_where_the_regret_ends() -> None:
    long = df.evaluate(df.make_env("bernoulli", horizon=2400), ["random", "ucb"], runs=64).summary
    for kind in ("regret", "suboptimality"):
        axes = Figure().subplots()
        line = curves(axes, long, kind)["ucb"]
        assert len(line.get_xdata()) == 1200
        curve = np.array(getattr(long.agents["ucb"], f"{kind}_curve"))
        stretches = curve[1::2] if kind == "regret" else curve.reshape(-1, 2).mean(axis=1)
        assert np.allclose(line.get_ydata(), stretches)


def test_a_crowd_has_no_bands(result: df.Result, tmp_path: Path) -> None:
    agents = ["random", "linucb", *(f"linucb@alpha={k}" for k in range(2, 9))]
    crowd = df.evaluate(df.make_env("high", horizon=3), agents, runs=2).summary
    for names, told in ((agents[:3], 1), (agents, 0)):
        draw_grid([Column("many", crowd, names)], tmp_path / "grid.svg")
        assert (tmp_path / "grid.svg").read_text().count("bands: ± one standard deviation") == told


def test_bands_show_one_standard_deviation_between_runs(result: df.Result) -> None:
    axes = Figure().subplots()
    curves(axes, result.summary, "regret")
    row = result.summary.agents["random"]
    top = axes.collections[0].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(max(np.array(row.regret_curve) + np.array(row.regret_curve_std)))


def test_a_single_round_can_be_drawn(tmp_path: Path) -> None:
    for agents in (["random"], ["optimal"]):
        df.evaluate(df.make_env("high", horizon=1), agents, runs=2).plot(tmp_path / "one.png")


def test_an_agent_has_the_same_colour_in_any_company() -> None:
    alone, crowd = looks_of(["thompson"]), looks_of(["linucb", "random", "thompson", "unheard-of"])
    assert alone["thompson"] == crowd["thompson"]
    variants = looks_of(["linucb", "linucb@alpha=2"])
    assert variants["linucb"][0] == variants["linucb@alpha=2"][0]
    assert variants["linucb"][1] != variants["linucb@alpha=2"][1]


def test_an_ending_that_is_no_picture_is_refused(result: df.Result, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"whose suffix is not an image format; use \.png or \.svg"):
        result.plot(tmp_path / "regret.docx")


def test_names_stand_at_the_ends_of_lines_in_their_order(result: df.Result) -> None:
    with drawn((6.0, 4.0)) as figure:
        fill(figure, result.summary)
        figure.canvas.draw()
    (axes,) = figure.axes
    texts = [text for text in axes.texts if text.get_text().partition(" ")[0] in result.summary.agents]
    assert len(texts) == len(result.summary.agents)
    boxes = {text.get_text().partition(" ")[0]: Text.get_window_extent(text) for text in texts}
    ranked = sorted(boxes, key=lambda name: boxes[name].y0)
    assert ranked == result.summary.ranking
    assert all(boxes[above].y0 > boxes[below].y0 + 5 for below, above in itertools.pairwise(ranked))


def test_side_by_side_panels_of_one_world_share_their_scales(result: df.Result, tmp_path: Path) -> None:
    seen: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "written", lambda figure, ending: seen.append(figure) or b"")
        draw_grid([Column(name, result.summary, [name]) for name in ("random", "oracle")], tmp_path / "grid.png")
    limits = [axes.get_ylim() for axes in seen[0].axes]
    assert limits[0] == limits[1]
    assert limits[2] == limits[3]


@pytest.mark.parametrize("colour", [*COLOURS.values(), "#ffffff", "#000000"])
@pytest.mark.parametrize("page", [LIGHT, DARK])
def test_any_colour_can_be_made_to_stand_out(page: str, colour: str) -> None:
    assert contrast(seen_on(page, colour, TEXT), page) >= TEXT
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


def test_what_happens_in_a_round_of_an_mdp_is_drawn_on_average_over_its_episode() -> None:
    """Steps differ: a line through all of them would be a band."""
    played = df.evaluate(df.make_env("lock", episodes=6), ["random"], runs=8, progress=False).summary
    with drawn((4, 3)) as figure:
        line = curves(figure.subplots(), played, "suboptimality")["random"]
    each = np.array(played.agents["random"].suboptimality_curve).reshape(6, 5)
    assert line.get_xdata().tolist() == [5, 10, 15, 20, 25, 30]
    assert np.allclose(line.get_ydata(), each.mean(axis=1))
