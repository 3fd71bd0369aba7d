"""From drawn questions to a batch that can be learned from. A rollout is how a list of questions is collated."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import torch

from hindsearch.errors import TrainingError
from hindsearch.hints import critique_metrics
from hindsearch.interfaces import CritiqueGenerator, Policy, Renderer, Reward, Select, SpanChoice
from hindsearch.metrics import group_metrics, rollout_metrics
from hindsearch.scoring import normalise_answer
from hindsearch.tensors import Example, RolloutBatch
from hindsearch.types import AttemptBatch, Critique, CritiqueOutcome, Draw, Record, Rollout, SpanKind, StopReason


class AgentResult(Protocol):
    """Finished rollouts, with what they cost."""

    @property
    def rollouts(self) -> Sequence[Rollout]: ...

    @property
    def metrics(self) -> Mapping[str, float]: ...


class Agent(Protocol):
    """Answers questions by searching: ``group_size`` rollouts per draw, group by group."""

    def __call__(self, draws: Sequence[Draw], group_size: int, temperature: float, stage: str) -> AgentResult: ...


@dataclass(frozen=True)
class Attempts:
    """Rolls out and scores. Used as it is for validation, and by ``Collector`` for training.

    ``stage`` ("train", "validation") is part of every seed, so that validation never repeats training's draws.
    """

    agent: Agent
    reward: Reward
    group_size: int
    temperature: float
    stage: str

    def __call__(self, draws: Sequence[Draw]) -> AttemptBatch:
        result = self.agent(draws, self.group_size, self.temperature, self.stage)
        finished = tuple(r for r in result.rollouts if r.stop is not StopReason.FAILED)
        return AttemptBatch(
            step=draws[0].step,
            rollouts=finished,
            scores=tuple(self.reward(finished)),
            num_failed=len(result.rollouts) - len(finished),
            metrics=result.metrics,
        )


@dataclass(frozen=True)
class Collector:
    """The whole experience side of a step: attempts, selection, critiques, advantages, tensors.

    ``max_failed`` is the share of a step's rollouts, or of its critiques, that infrastructure may lose.
    ``uses_critiques`` says of a step whether anything is learned from critiques at it.
    """

    attempts: Attempts
    select: Select
    span: SpanChoice
    critique: CritiqueGenerator
    policy: Policy
    renderer: Renderer
    max_failed: float
    uses_critiques: Callable[[int], bool]

    def __call__(self, draws: Sequence[Draw]) -> RolloutBatch:
        """Raise ``TrainingError`` where more than ``max_failed`` of the rollouts or critiques were lost."""
        attempted = self.attempts(draws)
        total = attempted.num_failed + len(attempted.rollouts)
        self._refuse_losses("rollouts", attempted.num_failed, total, "the retriever failed after its retries")
        rollouts, scores = attempted.rollouts, attempted.scores
        groups = _groups(rollouts)
        scores_PG = [[scores[i] for i in group] for group in groups]

        wanted = [False] * len(rollouts)
        if self.uses_critiques(attempted.step):
            rollouts_PG = [[rollouts[i] for i in group] for group in groups]
            for group, chosen in zip(groups, self.select(rollouts_PG, scores_PG), strict=True):
                for i, is_wanted in zip(group, chosen, strict=True):
                    wanted[i] = is_wanted
        began = time.perf_counter()
        critiques = self.critique(rollouts, scores, wanted, attempted.step)
        judge_seconds = time.perf_counter() - began
        asked = [c for c, w in zip(critiques, wanted, strict=True) if w]
        metrics = critique_metrics(asked)
        failed = [c.text for c in asked if c.outcome is CritiqueOutcome.FAILED]
        self._refuse_losses("critiques", len(failed), len(asked), *failed[:1])

        advantages = [0.0] * len(rollouts)
        in_policy = [True] * len(rollouts)
        for group in groups:
            rewards_G = [scores[i].reward for i in group]
            for i, advantage in zip(group, self._advantages(rewards_G), strict=True):
                advantages[i] = advantage
                in_policy[i] = self.policy.counts(rewards_G)
        return RolloutBatch(
            step=attempted.step,
            examples=tuple(self._example(*row) for row in zip(rollouts, critiques, advantages, in_policy, strict=True)),
            records=tuple(Record(*row) for row in zip(rollouts, scores, critiques, strict=True)),
            metrics={
                **attempted.metrics,
                **metrics,
                **rollout_metrics(rollouts, scores),
                **group_metrics(scores_PG),
                "rollout/in_policy": sum(in_policy) / max(len(in_policy), 1),
                "rollout/failed": attempted.num_failed / (attempted.num_failed + len(rollouts)),
                "time/judge": judge_seconds,
            },
        )

    def _advantages(self, rewards_G: Sequence[float]) -> list[float]:
        # a group that infrastructure cut down to one rollout has nothing to compare with
        return self.policy.advantages(rewards_G) if len(rewards_G) > 1 else [0.0] * len(rewards_G)

    def _refuse_losses(self, what: str, lost: int, total: int, reason: str = "") -> None:
        if total and lost / total > self.max_failed:
            raise TrainingError(
                f"{lost} of {total} {what} of this step were lost, more than rollout.max_failed={self.max_failed} "
                f"({reason}); mend that, then resume with ckpt_path=last"
            )

    def _example(self, rollout: Rollout, critique: Critique, advantage: float, in_policy: bool) -> Example:
        length = len(rollout.completion_ids)
        hindsight_mask_T = torch.zeros(length, dtype=torch.bool)
        hint_prompt: tuple[int, ...] = ()
        if critique.hint:
            hint_prompt = self.renderer.prompt(rollout.question, critique.hint)
            spans = [s for s in rollout.spans if critique.turn < 0 or s.turn == critique.turn]
            for start, end in self.span(spans):
                hindsight_mask_T[start:end] = True
        turn_T = torch.full((length,), -1, dtype=torch.long)
        right_T, good_T = torch.zeros(length, dtype=torch.bool), torch.zeros(length, dtype=torch.bool)
        right = {normalise_answer(query) for query in rollout.question.chain}
        for span in rollout.spans:
            if span.kind is SpanKind.TURN:
                turn_T[span.start : span.end] = span.turn
                good_T[span.start : span.end] = bool(critique.labels) and critique.labels[span.turn]
            if span.kind is SpanKind.SEARCH and normalise_answer(rollout.turns[span.turn].content) in right:
                right_T[span.outer_start : span.outer_end] = True
        loss_mask_T = torch.tensor(rollout.loss_mask, dtype=torch.bool)
        assert not bool((hindsight_mask_T & ~loss_mask_T).any()), "hindsight acts on the student's own tokens only"
        return Example(
            prompt_L=torch.tensor(rollout.prompt_ids, dtype=torch.long),
            completion_T=torch.tensor(rollout.completion_ids, dtype=torch.long),
            loss_mask_T=loss_mask_T,
            behaviour_logprobs_T=torch.tensor(rollout.logprobs, dtype=torch.float32),
            advantage=advantage,
            hint_prompt_H=torch.tensor(hint_prompt, dtype=torch.long),
            hindsight_mask_T=hindsight_mask_T,
            turn_T=turn_T,
            right_T=right_T,
            good_T=good_T,
            chain_known=bool(rollout.question.chain),
            in_policy=in_policy,
        )


def _groups(rollouts: Sequence[Rollout]) -> list[list[int]]:
    """Indices by group id. The groups come side by side, since they are made so at sampling."""
    indices = range(len(rollouts))
    return [list(group) for _, group in groupby(indices, key=lambda i: rollouts[i].group)]
