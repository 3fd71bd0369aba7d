"""Which terms act when: together, or in turns. The step alone decides, so that a resumed run goes on in its place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Joint:
    """Policy term and hindsight loss at every step."""

    def policy(self, step: int) -> float:
        return 1.0

    def hindsight(self, step: int) -> float:
        return 1.0

    def starts_round(self, step: int) -> bool:
        return False


@dataclass(frozen=True)
class Rounds:
    """Rounds of ``policy_steps`` of reinforcement learning, each followed by ``distil_steps`` of distillation alone.

    Search-E1 (arXiv 2605.22511): a distillation round learns from fresh rollouts of the policy that the round before
    it left, pulled toward the weights as they were when it began.
    """

    policy_steps: int
    distil_steps: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"loop.{name}={value} leaves a round empty; use 1 or more, or loop=joint")

    def _place(self, step: int) -> int:
        return step % (self.policy_steps + self.distil_steps)

    def policy(self, step: int) -> float:
        return float(self._place(step) < self.policy_steps)

    def hindsight(self, step: int) -> float:
        return float(self._place(step) >= self.policy_steps)

    def starts_round(self, step: int) -> bool:
        return self._place(step) == self.policy_steps
