"""What rollouts of one group say about each other: the block of their queries, and the best of them to learn from."""

from collections.abc import Sequence

from hindsearch.scoring import normalise_answer
from hindsearch.types import Rollout, Score


def sibling_block(attempts: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Attempts as a label ('' for none) and their queries in order, in one line.

    ``<hindsight> attempt 1 CORRECT : query | query ; attempt 2 INCORRECT : ... </hindsight>``. SD-Search
    (arXiv 2605.18299) does not print its block; this wording is ours.
    """
    heads = (f"attempt {n} {label}".rstrip() for n, (label, _) in enumerate(attempts, 1))
    shown = (f"{head} : {' | '.join(queries)}".rstrip() for head, (_, queries) in zip(heads, attempts, strict=True))
    return f"<hindsight> {' ; '.join(shown)} </hindsight>"


def expert_of(rollouts_G: Sequence[Rollout], scores_G: Sequence[Score], student: int) -> int | None:
    """The correct rollout with the fewest searches, other than ``student`` itself; the first of several.

    ``None`` where there is none, or where it made the same searches and gave the same answer as the student: there is
    nothing to learn from it then (Search-E1, arXiv 2605.22511).
    """
    correct = [i for i, score in enumerate(scores_G) if score.em == 1.0 and i != student]
    distinct = [i for i in correct if _acts(rollouts_G[i]) != _acts(rollouts_G[student])]
    return min(distinct, key=lambda i: (len(rollouts_G[i].searches), i), default=None)


def pair_of(rollouts_G: Sequence[Rollout], scores_G: Sequence[Score]) -> tuple[int, int] | None:
    """A group's (student, expert): Search-E1's pair, or ``None`` where there is no correct rollout or no distinct pair.

    The student is the first incorrect rollout, or, where all are correct, the one whose queries differ most from the
    expert's (lowest Jaccard index).
    """
    correct = [i for i, score in enumerate(scores_G) if score.em == 1.0]
    expert = min(correct, key=lambda i: (len(rollouts_G[i].searches), i), default=None)
    if expert is None:
        return None
    others = [i for i in range(len(rollouts_G)) if i not in correct] or [i for i in correct if i != expert]
    distinct = [i for i in others if _acts(rollouts_G[i]) != _acts(rollouts_G[expert])]
    if not distinct:
        return None
    wrong = [i for i in distinct if scores_G[i].em != 1.0]
    student = wrong[0] if wrong else min(distinct, key=lambda i: (_jaccard(rollouts_G[i], rollouts_G[expert]), i))
    return student, expert


def _acts(rollout: Rollout) -> tuple[list[str], str]:
    return [normalise_answer(turn.content) for turn in rollout.searches], normalise_answer(rollout.answer or "")


def _jaccard(left: Rollout, right: Rollout) -> float:
    a, b = set(_acts(left)[0]), set(_acts(right)[0])
    return len(a & b) / len(a | b) if a | b else 1.0
