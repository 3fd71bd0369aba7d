"""Which of several critiques of one rollout is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hindsearch.hints import hint_text
from hindsearch.interfaces import LanguageModel, Renderer, SpanChoice
from hindsearch.types import Critique, Rollout


@dataclass(frozen=True)
class First:
    """The one written first."""

    def __call__(self, rollouts: Sequence[Rollout], candidates: Sequence[Sequence[Critique]]) -> list[int]:
        return [0] * len(rollouts)


@dataclass(frozen=True)
class Shortest:
    """The one of fewest words; the first of several."""

    def __call__(self, rollouts: Sequence[Rollout], candidates: Sequence[Sequence[Critique]]) -> list[int]:
        return [min(range(len(row)), key=lambda i: (_words(row[i]), i)) for row in candidates]


@dataclass(frozen=True)
class Longest:
    """The one of most words (OpenClaw-RL v1, arXiv 2603.10165); the first of several."""

    def __call__(self, rollouts: Sequence[Rollout], candidates: Sequence[Sequence[Critique]]) -> list[int]:
        return [max(range(len(row)), key=lambda i: (_words(row[i]), -i)) for row in candidates]


@dataclass(frozen=True)
class Overlap:
    """The one under which the teacher's likeliest tokens are most like the student's (OpenClaw-RL v2, 2603.10165).

    Counts, summed over the selected tokens of the rollout, how many of the teacher's ``k`` likeliest entries are among
    the student's: the hint that asks for what the student can nearly say. The first of several. One pass of the teacher
    per candidate, and one of the student per rollout, before the step is learned from.
    """

    student: LanguageModel
    teacher: LanguageModel
    renderer: Renderer
    span: SpanChoice
    k: int = 4

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"selection.k={self.k} compares nothing; use 1 or more, for example 4")

    def __call__(self, rollouts: Sequence[Rollout], candidates: Sequence[Sequence[Critique]]) -> list[int]:
        return [self._best(rollout, row) for rollout, row in zip(rollouts, candidates, strict=True)]

    def _best(self, rollout: Rollout, row: Sequence[Critique]) -> int:
        places = [t for start, end in self.span(rollout.spans) for t in range(start, end)]
        if len(row) < 2 or not places:
            return 0
        own_TK = self._top(self.student, rollout.prompt_ids, rollout, places)
        counts: list[int] = []
        for critique in row:
            prompt = self.renderer.prompt(rollout.question, critique.hint)
            hinted_TK = self._top(self.teacher, prompt, rollout, places)
            counts.append(int((hinted_TK[:, :, None] == own_TK[:, None, :]).sum()))
        return max(range(len(row)), key=lambda i: (counts[i], -i))

    def _top(
        self, model: LanguageModel, prompt: Sequence[int], rollout: Rollout, places: Sequence[int]
    ) -> torch.Tensor:
        sequence = torch.tensor([*prompt, *rollout.completion_ids])
        with torch.no_grad():
            hidden_TD = model.hidden([sequence], [torch.tensor(places) + len(prompt)])
            logprobs_TV = model.logprobs(hidden_TD)
        return logprobs_TV.topk(min(self.k, logprobs_TV.shape[-1]), dim=-1).indices


def _words(critique: Critique) -> int:
    return len(hint_text(critique).split())
