"""How much a rollout may take, checked before a run starts."""

from dataclasses import dataclass

from hindsearch.errors import UserError


@dataclass(frozen=True)
class Budget:
    """Limits of one rollout, in tokens but for ``max_turns`` and ``top_k``.

    ``max_turns`` turns may search; then one last turn may only answer (Search-R1's loop).
    """

    max_turns: int
    turn_tokens: int
    observation_tokens: int
    context_tokens: int
    top_k: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = 0 if name == "max_turns" else 1
            if not isinstance(value, int) or value < least:
                raise ValueError(f"agent.{name}={value} must be a whole number of at least {least}")

    @property
    def worst_case(self) -> int:
        """Tokens of the longest completion that the other limits allow."""
        return (self.max_turns + 1) * self.turn_tokens + self.max_turns * self.observation_tokens

    def check(self, longest_prompt: int, max_positions: int) -> str:
        """Refuse what cannot work; return a warning, or '' if even the longest rollout fits.

        Raises:
            UserError: the context is longer than the model reads, or one search and an answer do not fit into it.
        """
        if self.context_tokens > max_positions:
            raise UserError(
                f"agent.context_tokens={self.context_tokens} is more than the {max_positions} positions the student "
                f"reads; use {max_positions} or fewer"
            )
        cycle = longest_prompt + 2 * self.turn_tokens + self.observation_tokens
        if self.max_turns == 0:
            cycle = longest_prompt + self.turn_tokens
        if cycle > self.context_tokens:
            raise UserError(
                f"agent.context_tokens={self.context_tokens} cannot hold the longest prompt ({longest_prompt} tokens), "
                f"one search and an answer: that takes {cycle}; raise it, or lower agent.turn_tokens="
                f"{self.turn_tokens} or agent.observation_tokens={self.observation_tokens}"
            )
        longest = longest_prompt + self.worst_case
        if longest > self.context_tokens:
            return (
                f"a rollout of {self.max_turns} full turns would take {longest} tokens and is ended at "
                f"agent.context_tokens={self.context_tokens}; rollout/stop_context_limit counts how often"
            )
        return ""
