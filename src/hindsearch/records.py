"""A finished attempt as a JSON row, and as text for people."""

from typing import Any

from hindsearch.types import Record


def record_row(step: int, record: Record) -> dict[str, Any]:
    """A rollout as one JSON object; ids, masks and log-probabilities included."""
    rollout, score, critique = record.rollout, record.score, record.critique
    return {
        "step": step,
        "group": rollout.group,
        "index": rollout.index,
        "question_id": rollout.question.id,
        "source": rollout.question.source,
        "question": rollout.question.text,
        "golden_answers": list(rollout.question.golds),
        "response": rollout.text,
        "answer": rollout.answer,
        "stop": rollout.stop.value,
        "reward": score.reward,
        "em": score.em,
        "f1": score.f1,
        "searches": [
            {"query": turn.content, "passages": [{"id": p.id, "title": p.title} for p in turn.passages]}
            for turn in rollout.searches
        ],
        "critique": {"text": critique.text, "hint": critique.hint, "outcome": critique.outcome.value},
        "prompt_ids": list(rollout.prompt_ids),
        "completion_ids": list(rollout.completion_ids),
        "loss_mask": [int(m) for m in rollout.loss_mask],
        "logprobs": list(rollout.logprobs),
    }


def as_markdown(record: Record) -> str:
    """A rollout for people. Retrieved text is indented as code, so that no markup in it is rendered."""
    rollout, score = record.rollout, record.score
    lines = [
        f"**{_inline(rollout.question.text)}**",
        f"gold: {_inline(' | '.join(rollout.question.golds))} · answer: {_inline(str(rollout.answer))} · "
        f"EM {score.em:g} · {rollout.stop.value}",
    ]
    for turn in rollout.turns:
        lines.append(_code(turn.text))
        if turn.observation:
            lines.append(_code(turn.observation))
    if record.critique.text:
        lines.append(f"critique ({record.critique.outcome.value}): {_inline(record.critique.text)}")
    return "\n\n".join(lines)


def _code(text: str) -> str:
    return "\n".join("    " + line for line in text.strip("\n").splitlines())


def _inline(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")
