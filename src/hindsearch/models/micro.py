"""The micro-world's student: a Llama of about 0.4 M weights over whole words."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIALS = ("<pad>", "<eos>", "<unk>")


def word_tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one id per word, split at white space; decoding joins the words by one space.

    Tags are ordinary words: only ``<pad>``, ``<eos>`` and ``<unk>`` are special.

    Raises:
        ValueError: if a word occurs twice, holds white space, or is one of the special words.
    """
    odd = [word for word in words if word in SPECIALS or word.split() != [word]]
    if odd or len(set(words)) != len(words):
        raise ValueError(f"words must be distinct, unspaced and none of {SPECIALS}; seen {odd or 'a word twice'}")
    vocabulary = {word: place for place, word in enumerate((*SPECIALS, *words))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


@dataclass(frozen=True)
class MicroBase:
    """A base model with random weights, to be warm-started.

    ``words`` is the vocabulary; ``hidden`` and ``mlp`` are widths. The large ``init_std`` (transformers' own is
    0.02) makes so small a model learn to copy in far fewer steps.
    """

    words: Sequence[str]
    hidden: int = 96
    layers: int = 3
    heads: int = 4
    mlp: int = 264
    init_std: float = 0.06
    max_length: int = 1024
    """Positions; a trajectory with a hint takes about 150."""

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"hidden must be a multiple of heads, and {self.hidden} is not one of {self.heads}")

    def tokenizer(self) -> PreTrainedTokenizerFast:
        return word_tokenizer(self.words)

    def model(self, seed: int) -> LlamaForCausalLM:
        """Return the model. ``seed`` alone decides the weights; the global random state is left alone."""
        config = LlamaConfig(
            vocab_size=len(SPECIALS) + len(self.words),
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            intermediate_size=self.mlp,
            initializer_range=self.init_std,
            max_position_embeddings=self.max_length,
            tie_word_embeddings=True,
            pad_token_id=SPECIALS.index("<pad>"),
            eos_token_id=SPECIALS.index("<eos>"),
            bos_token_id=None,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return LlamaForCausalLM(config)

    def fingerprint(self) -> dict[str, str]:
        return {"words": hashlib.sha256(" ".join(self.words).encode()).hexdigest()}
