"""What a study runs: its grid.yaml as cells, in an order that can be stopped anywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class GridError(Exception):
    """A grid that cannot be run as asked; one sentence."""


@dataclass(frozen=True)
class Cell:
    """One run: an arm with a weight, on a warm start, with a seed."""

    stage: str
    arm: str
    weight: float | None
    """Of the arm's own term; ``None`` where the arm has nothing to weigh."""
    warm_start: str
    seed: int
    steps: int
    overrides: tuple[str, ...]
    """Of ``hindsearch train``, but for where the run is written."""
    needs: tuple[str, ...] = ()
    """Names of products that must be there first."""

    @property
    def place(self) -> Path:
        """The run's folder, below that of the study's runs."""
        weight = "" if self.weight is None else f"-w{self.weight:g}"
        return Path(self.stage) / f"{self.arm}{weight}" / f"{self.warm_start}-s{self.seed}"

    def record(self) -> dict[str, Any]:
        """What is written beside a finished run."""
        return {
            "stage": self.stage,
            "arm": self.arm,
            "weight": self.weight,
            "warm_start": self.warm_start,
            "seed": self.seed,
            "steps": self.steps,
            "overrides": list(self.overrides),
        }


@dataclass(frozen=True)
class Grid:
    """A study's arms, warm starts and stages. ``runs`` is the folder that ``{runs}`` stands for in overrides."""

    content: Mapping[str, Any]
    runs: Path

    @property
    def arms(self) -> Mapping[str, Mapping[str, Any]]:
        return self.content["arms"]

    @property
    def baseline(self) -> str:
        return self.content["baseline"]

    def stage(self, name: str) -> Mapping[str, Any]:
        return self._chosen("stages", name)

    def product(self, name: str) -> Mapping[str, Any]:
        """What ``needs`` names: the folder that is made, and the overrides of ``hindsearch warmstart``."""
        product = self._chosen("products", name)
        return {
            "folder": Path(self._fill(product["folder"])),
            "overrides": [self._fill(text) for text in product["overrides"]],
        }

    def cells(
        self,
        stage: str,
        chosen_weights: Mapping[str, float],
        arms: Sequence[str] = (),
        warm_starts: Sequence[str] = (),
        seeds: Sequence[int] = (),
    ) -> list[Cell]:
        """Every cell of a stage, or those of the given arms, warm starts and seeds.

        Seeds come first and warm starts second, so that a study cut short has whole comparisons. Within one, the
        baseline leads and the rest keep the order of the grid.

        Raises:
            GridError: an unknown name, or an arm of a stage with chosen weights that has none yet.
        """
        plan = self.stage(stage)
        for group, names in (("arms", arms), ("warm_starts", warm_starts)):
            for name in names:
                self._chosen(group, name)
        kept = sorted((a for a in self.arms if not arms or a in arms), key=lambda arm: arm != self.baseline)
        weights = {arm: list(self._weights(arm, plan, chosen_weights)) for arm in kept}
        return [
            self._cell(stage, arm, weight, warm_start, seed)
            for seed in plan["seeds"]
            if not seeds or seed in seeds
            for warm_start in plan["warm_starts"]
            if not warm_starts or warm_start in warm_starts
            for arm in kept
            for weight in weights[arm]
        ]

    def _weights(self, arm: str, plan: Mapping[str, Any], chosen: Mapping[str, float]) -> Iterator[float | None]:
        node = self.arms[arm]
        if plan["weights"] == "all":  # the sweep itself: arms that have no weights of their own are not in it
            yield from node.get("weights", [])
            return
        if "weight_key" not in node:
            yield None
            return
        tuned = node.get("weight_of", arm)
        if tuned in chosen:
            yield chosen[tuned]
        elif len(self.arms[tuned]["weights"]) == 1:
            yield self.arms[tuned]["weights"][0]
        else:
            raise GridError(
                f"no weight is chosen for {tuned} yet; run the stage that screens weights and analyse it, "
                "or leave the arm out with --arms"
            )

    def _cell(self, stage: str, arm: str, weight: float | None, warm_start: str, seed: int) -> Cell:
        node, plan = self.arms[arm], self.stage(stage)
        overrides = [*self.content["common"], *self._chosen("warm_starts", warm_start), *node["overrides"]]
        overrides += [f"trainer.max_steps={plan['steps']}", f"seed={seed}"]
        if weight is not None:
            overrides.append(f"{node['weight_key']}={weight:g}")
        filled = tuple(self._fill(text) for text in overrides)
        return Cell(stage, arm, weight, warm_start, seed, plan["steps"], filled, tuple(node.get("needs", ())))

    def _fill(self, text: str) -> str:
        return text.replace("{runs}", str(self.runs))

    def _chosen(self, group: str, name: str) -> Any:
        if name not in self.content[group]:
            raise GridError(f"{name} is not among {group}; there are {', '.join(self.content[group])}")
        return self.content[group][name]


def read_grid(study: Path, runs: Path) -> Grid:
    file = study / "grid.yaml"
    if not file.is_file():
        raise GridError(f"{study} is no study: it has no grid.yaml")
    return Grid(yaml.safe_load(file.read_text(encoding="utf-8")), runs)


def read_weights(study: Path) -> dict[str, float]:
    """The weights that screening chose, by arm; none before it."""
    file = study / "weights.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
