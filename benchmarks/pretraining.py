"""How fast policies are pretrained on a GPU: tokens and model TFLOP/s, data generation included.

    python -m benchmarks.pretraining [--profile]

The policy of 16 layers, 16 heads and D=256 at T=200, in both forms, and the shipped sizes; the first half of the steps,
which compiles, is not counted. With --profile, the kernels that take the most time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from driftformer.pretraining.recipes import RECIPES, Recipe
from driftformer.pretraining.run import Report, train

LARGE = {"layers": 16, "heads": 16, "width": 256, "own": 0.0, "short": 0.0}
CASES = {
    "paper form, 16 x 16, D=256": ("high", LARGE),
    "pointer form, 16 x 16, D=256": ("cosine", LARGE),
    "high as shipped": ("high", {}),
    "low as shipped": ("low", {}),
    "cosine as shipped": ("cosine", {}),
}


def speed(recipe: Recipe, device: str) -> tuple[float, float]:
    """Tokens per second and TFLOP/s over the second half of the steps."""
    reports: list[Report] = []
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, Path(folder), device=device, evaluate_every=10**9, on_report=reports.append)
    later = reports[len(reports) // 2 : -1]
    return (
        statistics.harmonic_mean(report.tokens_per_second for report in later),
        statistics.harmonic_mean(report.teraflops for report in later),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    options = parser.parse_args()
    for title in options.cases:
        name, changes = CASES[title]
        recipe = replace(RECIPES[name], steps=options.steps, tuning_steps=0, **changes)  # type: ignore[arg-type]
        if options.profile:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
                tokens, teraflops = speed(recipe, options.device)
            print(seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=25, max_name_column_width=90))
        else:
            tokens, teraflops = speed(recipe, options.device)
        print(f"{title}: {tokens / 1e6:.2f}M tokens/s, {teraflops:.0f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
