"""An engine that says what a test wants said, cut where a real engine would cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hindsearch.interfaces import Generation, TurnEnd
from hindsearch.tokens import Tokens
from hindsearch.types import Sampling

TEXTS = [
    "<think> I look it up. </think> <search> who directed the film </search>",
    "<information> Doc 1(Title: the film) was directed by Jane Doe </information>",
    "<answer> Jane Doe </answer> My last action was not valid. What is the question?",
]


def bpe(chat_template: str | None = None) -> Tokens:
    """A small byte-level BPE: tags are spelled over several tokens; pad is also the end of text, as SmolLM2 has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = chat_template
    return Tokens(fast)


@dataclass
class ScriptedEngine:
    """Row ``i`` says ``scripts[i][t]`` in its turn ``t``, and nothing once its script is over.

    ``calls`` keeps what ``extend`` was given; log-probabilities count down, so that each is known again.
    """

    tokens: Tokens
    scripts: Sequence[Sequence[str]]
    calls: list[tuple[list[int], list[tuple[int, ...]], list[int]]] = field(default_factory=list)
    sampling: list[Sampling] = field(default_factory=list)
    said: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)

    def start(self, prompts, copies: int, sampling: Sequence[Sampling], ends_turn: TurnEnd) -> "ScriptedEngine":
        assert len(self.scripts) == len(prompts) * copies
        self.sampling, self._ends_turn, self._turn = list(sampling), ends_turn, [0] * len(self.scripts)
        return self

    def extend(self, rows, new_ids, max_new_tokens) -> list[Generation]:
        self.calls.append((list(rows), [tuple(ids) for ids in new_ids], list(max_new_tokens)))
        return [self._say(row, limit) for row, limit in zip(rows, max_new_tokens, strict=True)]

    def _say(self, row: int, limit: int) -> Generation:
        script, turn = self.scripts[row], self._turn[row]
        self._turn[row] += 1
        ids: list[int] = []
        for token in self.tokens.encode_template(script[turn] if turn < len(script) else "…"):
            ids.append(token)
            if len(ids) >= limit or (token in self._ends_turn.candidates and self._ends_turn(ids)):
                break
        self.said.setdefault(row, []).append(tuple(ids))
        return Generation(tuple(ids), tuple(-0.01 * (i + 1) for i in range(len(ids))))
