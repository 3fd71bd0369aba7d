"""What rollouts look like as numbers. Names are those of the log: one place fixes them."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from hindsearch.scoring import normalise_answer
from hindsearch.types import Rollout, Score, StopReason, TurnKind


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def rollout_metrics(rollouts: Sequence[Rollout], scores: Sequence[Score]) -> dict[str, float]:
    """What the rollouts of a step look like, as means over rollouts unless the name says otherwise.

    ``rollout/entropy`` is the mean of −log p over sampled tokens: an unbiased estimate at temperature 1.
    ``rollout/correct_logprob`` is the mean log-probability of the tokens of correct rollouts, whose decline is the
    first sign of collapse (arXiv 2512.04220).
    """

    def share(holds: Callable[[Rollout], bool]) -> float:
        return _mean([float(holds(rollout)) for rollout in rollouts])

    sampled = [[p for p, m in zip(r.logprobs, r.loss_mask, strict=True) if m] for r in rollouts]
    correct = [p for row, score in zip(sampled, scores, strict=True) if score.em == 1.0 for p in row]
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    queries = [turn.content for turn in turns if turn.kind is TurnKind.SEARCH]
    metrics = {
        "train/reward": _mean([s.reward for s in scores]),
        "train/em": _mean([s.em for s in scores]),
        "train/f1": _mean([s.f1 for s in scores]),
        "rollout/searches": _mean([len(r.searches) for r in rollouts]),
        "rollout/tokens": _mean([len(row) for row in sampled]),
        "rollout/answered": share(lambda r: r.answer is not None),
        "rollout/invalid_turns": _mean([float(t.kind is TurnKind.INVALID) for t in turns]),
        "rollout/entropy": -_mean([p for row in sampled for p in row]),
        "rollout/distinct_queries": len(set(queries)) / len(queries) if queries else 0.0,
    }
    if correct:
        metrics["rollout/correct_logprob"] = _mean(correct)
    for reason in StopReason:
        if reason is not StopReason.FAILED:
            metrics[f"rollout/stop_{reason.value}"] = share(lambda r, reason=reason: r.stop is reason)
    chains = [(r, {normalise_answer(q) for q in r.question.chain}) for r in rollouts if r.question.chain]
    if chains:
        # of the right queries of a question's chain, how many the rollout made
        found = [len({normalise_answer(t.content) for t in r.searches} & chain) / len(chain) for r, chain in chains]
        metrics["rollout/chain_found"] = _mean(found)
    return metrics


def group_metrics(scores_PG: Sequence[Sequence[Score]]) -> dict[str, float]:
    """Shares of groups in which all fail, all succeed, or both occur (design rule 5)."""
    kinds = [(any(s.em == 1.0 for s in group), any(s.em != 1.0 for s in group)) for group in scores_PG]
    return {
        "rollout/groups_all_fail": _mean([float(not success) for success, _ in kinds]),
        "rollout/groups_all_success": _mean([float(not failure) for _, failure in kinds]),
        "rollout/groups_mixed": _mean([float(success and failure) for success, failure in kinds]),
    }


def validation_metrics(rows: Sequence[tuple[str, Score]], suffix: str, lost: int) -> dict[str, float]:
    """``val/em`` is the macro mean over sets; ``val/em/<set>`` each set's mean; sampled ones end in the suffix."""
    by_source: dict[str, list[Score]] = defaultdict(list)
    for source, score in rows:
        by_source[source].append(score)
    metrics: dict[str, float] = {}
    for name in ("em", "f1"):
        key = f"val/{name}{suffix}"
        means = {s: sum(getattr(x, name) for x in scores) / len(scores) for s, scores in by_source.items()}
        if means:
            metrics[key] = sum(means.values()) / len(means)
            metrics |= {f"{key}/{source}": mean for source, mean in sorted(means.items())}
    metrics[f"val/questions{suffix}"] = float(len(rows))
    if lost:
        metrics[f"val/lost{suffix}"] = float(lost)
    return metrics
