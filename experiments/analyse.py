"""From the finished cells of a stage to results, tables and a plot in the study's folder.

python experiments/analyse.py experiments/01_ablation --stage main

Writes <stage>.csv (a row per cell), <stage>_curves.csv (a row per validation), <stage>.md and, unless the stage screens
weights, <stage>.png. A stage that screens weights writes weights.yaml: for each arm the weight with the largest mean
area under the sampled curve, the smaller one of equals.
"""

import argparse
import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import yaml
from bootstrap import Place, estimate, paired
from curves import Point, area, curve_of, first_at, last_mean, mean_between, read_rows
from grid import Grid, GridError, read_grid, read_weights
from plot import draw
from run import DONE

SPENT = ("time/generate", "time/retrieve", "time/judge", "time/teacher", "time/update")
POINTS = 3
"""Validations at the end that the final sampled EM is the mean of."""
EARLY = 10
"""Steps that count as early."""


@dataclass(frozen=True)
class Result:
    """What one cell came to. Sampled EM unless the name says greedy; right shares are not a number without any."""

    arm: str
    weight: float | None
    warm_start: str
    seed: int
    em: float
    em_greedy: float
    area: float
    to_60: int | None
    to_80: int | None
    right_share_early: float
    """Of the first ten steps."""
    right_share_late: float
    """Of the last third of the steps."""
    searches: float
    """Per rollout, over the last ten steps."""
    seconds: float
    """Of the training steps, without validation."""

    @property
    def place(self) -> Place:
        return self.warm_start, self.seed


def read_cell(folder: Path) -> tuple[Result, list[Point]]:
    """A finished cell's figures and curve."""
    cell, rows = json.loads((folder / DONE).read_text(encoding="utf-8")), read_rows(folder)
    sampled, greedy = curve_of(rows, "val/em_sampled"), curve_of(rows, "val/em")
    right = curve_of(rows, "hindsight/right_share", "train")
    searches = curve_of(rows, "rollout/searches", "train")
    last = sampled[-1][0]
    head = (cell["arm"], cell["weight"], cell["warm_start"], cell["seed"])
    result = Result(
        *head,
        em=last_mean(sampled, POINTS),
        em_greedy=greedy[-1][1],
        area=area(sampled),
        to_60=first_at(sampled, 0.6),
        to_80=first_at(sampled, 0.8),
        right_share_early=mean_between(right, 0, EARLY),
        right_share_late=mean_between(right, last - last // 3, last),
        searches=last_mean(searches, EARLY),
        seconds=sum(row.get(name, 0.0) for row in rows if row["stage"] == "train" for name in SPENT),
    )
    steps = [-1, *(step for step, _ in sampled)]
    points = [
        Point(*head, step, em, dict(greedy)[step], mean_between(right, before, step))
        for before, (step, em) in zip(steps, sampled, strict=False)
    ]
    return result, points


def read_stage(folder: Path) -> tuple[list[Result], list[Point]]:
    results, points = [], []
    for file in sorted(folder.rglob(DONE)):
        result, own = read_cell(file.parent)
        results.append(result)
        points += own
    return results, points


def by_place(results: Iterable[Result], arm: str, figure: str) -> dict[Place, float]:
    """A figure of an arm's cells by warm start and seed, without those that have none."""
    mine = {r.place: getattr(r, figure) for r in results if r.arm == arm}
    return {place: value for place, value in mine.items() if not math.isnan(value)}


def reached(results: Sequence[Result], figure: str) -> str:
    """The median of the steps to a threshold, never being later than all, and how many got there."""
    steps = sorted(math.inf if getattr(r, figure) is None else getattr(r, figure) for r in results)
    low, high = steps[(len(steps) - 1) // 2], steps[len(steps) // 2]
    middle = (low + high) / 2
    return f"{'never' if math.isinf(middle) else f'{middle:g}'} ({sum(map(math.isfinite, steps))}/{len(steps)})"


def main_table(results: Sequence[Result], grid: Grid) -> list[str]:
    """A row per arm, in the order of the grid: means, and differences from the baseline over pairs."""
    base = grid.baseline
    lines = [
        "| arm | weight | runs | final EM | final EM, greedy | area | to .6 | to .8 | right share, early | late "
        f"| searches | seconds | final EM − {base} | area − {base} |",
        "|---" * 14 + "|",
    ]
    for arm in grid.arms:
        mine = [r for r in results if r.arm == arm]
        if not mine:
            continue
        weights = "–" if mine[0].weight is None else ", ".join(sorted({f"{r.weight:g}" for r in mine}))
        cells = [arm, weights, str(len(mine))]
        cells += [estimate(by_place(results, arm, figure)).text() for figure in ("em", "em_greedy", "area")]
        cells += [reached(mine, "to_60"), reached(mine, "to_80")]
        for figure in ("right_share_early", "right_share_late"):
            share = estimate(by_place(results, arm, figure))
            cells.append(f"{share.mean:.2f}" if share.count else "–")
        cells.append(f"{estimate(by_place(results, arm, 'searches')).mean:.2f}")
        cells.append(f"{estimate(by_place(results, arm, 'seconds')).mean:.0f}")
        cells += ["" if arm == base else difference(results, arm, base, f) for f in ("em", "area")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def difference(results: Sequence[Result], left: str, right: str, figure: str) -> str:
    return paired(by_place(results, left, figure), by_place(results, right, figure)).text(signed=True)


def contrast_table(results: Sequence[Result], contrasts: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| difference | pairs | final EM | area |", "|---|---|---|---|"]
    for left, right in contrasts:
        pairs = len(by_place(results, left, "em").keys() & by_place(results, right, "em").keys())
        if pairs:
            figures = [difference(results, left, right, figure) for figure in ("em", "area")]
            lines.append(f"| {left} − {right} | {pairs} | {' | '.join(figures)} |")
    return lines


def screen_table(results: Sequence[Result], chosen: Mapping[str, float]) -> list[str]:
    lines = ["| arm | weight | runs | area | area by seed | final EM | chosen |", "|---" * 7 + "|"]
    for (arm, weight), mine in _by_weight(results).items():
        areas = [r.area for r in mine]
        figures = [f"{sum(areas) / len(areas):.3f}", " ".join(f"{a:.3f}" for a in areas)]
        figures.append(f"{sum(r.em for r in mine) / len(mine):.3f}")
        mark = "yes" if chosen.get(arm) == weight else ""
        lines.append(f"| {arm} | {weight:g} | {len(mine)} | {' | '.join(figures)} | {mark} |")
    return lines


def choose_weights(results: Sequence[Result]) -> dict[str, float]:
    """For each arm the weight with the largest mean area; the smaller one of equals.

    Raises:
        GridError: weights of an arm that were not run with the same seeds.
    """
    areas: dict[str, dict[float, float]] = defaultdict(dict)
    places: dict[str, set[frozenset[Place]]] = defaultdict(set)
    for (arm, weight), mine in _by_weight(results).items():
        areas[arm][weight] = sum(r.area for r in mine) / len(mine)
        places[arm].add(frozenset(r.place for r in mine))
    if uneven := [arm for arm, sets in places.items() if len(sets) > 1]:
        raise GridError(
            f"weights of {', '.join(uneven)} were not all run with the same seeds; run the stage to its end"
        )
    return {arm: max(sorted(own), key=lambda weight: own[weight]) for arm, own in areas.items()}


def _by_weight(results: Sequence[Result]) -> dict[tuple[str, float], list[Result]]:
    groups: dict[tuple[str, float], list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda r: (r.arm, r.weight or 0.0, r.place)):
        if result.weight is not None:
            groups[result.arm, result.weight].append(result)
    return groups


def missing_cells(results: Sequence[Result], grid: Grid, stage: str, weights: Mapping[str, float]) -> list[str]:
    """Places of the stage's cells that are not finished."""
    have = {(r.arm, r.weight, *r.place) for r in results}
    cells = grid.cells(stage, weights)
    return [str(c.place) for c in cells if (c.arm, c.weight, c.warm_start, c.seed) not in have]


def write_csv(file: Path, kind: type, rows: Sequence[Result] | Sequence[Point]) -> None:
    """A row per item; empty where there is no value."""
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([field.name for field in fields(kind)])
        writer.writerows([[_shown(value) for value in asdict(row).values()] for row in rows])


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return "" if value is None else value


def one_weight_each(results: Sequence[Result]) -> None:
    """Raise ``GridError`` where an arm was run with two weights: its figures would be of neither."""
    weights: dict[str, set[float | None]] = defaultdict(set)
    for result in results:
        weights[result.arm].add(result.weight)
    if mixed := [arm for arm, seen in weights.items() if len(seen) > 1]:
        raise GridError(f"{', '.join(mixed)} was run with more than one weight; move the folders of one away")


def analyse(study: Path, stage: str, runs: Path) -> list[str]:
    """Write the stage's files and return what is to be said."""
    grid = read_grid(study, runs)
    screens = grid.stage(stage)["weights"] == "all"
    results, points = read_stage(runs / stage)
    if not results:
        raise GridError(f"no finished cell in {runs / stage}; run the stage first")
    if screens:
        chosen = choose_weights(results)
        tables = screen_table(results, chosen)
        text = yaml.safe_dump(chosen, sort_keys=True)
        (study / "weights.yaml").write_text(f"# chosen by analyse.py --stage {stage}\n{text}", encoding="utf-8")
    else:
        one_weight_each(results)
        chosen = read_weights(study)
        tables = [*main_table(results, grid), "", *contrast_table(results, grid.content.get("contrasts", []))]
        draw(points, grid, study / f"{stage}.png")
    write_csv(study / f"{stage}.csv", Result, results)
    write_csv(study / f"{stage}_curves.csv", Point, points)
    (study / f"{stage}.md").write_text("\n".join(tables) + "\n", encoding="utf-8")
    missing = missing_cells(results, grid, stage, chosen)
    return [*([f"not finished: {len(missing)} cells, the first is {missing[0]}"] if missing else []), *tables]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="a folder with a grid.yaml")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--runs", type=Path, help="where runs were written; outputs/<study> if not given")
    options = parser.parse_args()
    try:
        lines = analyse(options.study, options.stage, options.runs or Path("outputs") / options.study.resolve().name)
    except GridError as error:
        print(f"analyse: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
