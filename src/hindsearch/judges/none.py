"""No judge: for methods whose teacher sees nothing that a judge wrote."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.errors import UserError
from hindsearch.interfaces import Finding, JudgeRequest
from hindsearch.types import Rollout


@dataclass(frozen=True)
class NoJudge:
    """Refuses to be asked: a critique that wants a judge and gets none is a mistake in the options."""

    def requests(self, rollouts: Sequence[Rollout]) -> list[JudgeRequest]:
        raise UserError(
            "judge=none writes no critiques, and this critique wants them; choose judge=gold or critique=none"
        )

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        raise UserError("judge=none reads no reply; choose judge=gold or critique=none")
