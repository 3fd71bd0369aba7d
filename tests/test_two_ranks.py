"""Two gloo ranks make the rollouts and the update of one rank on the joined batch."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from harness import rows, run, weights
from hindsearch.grammar import WORDS
from hindsearch.models.micro import word_tokenizer


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """GPT-2's shape: its layer norm keeps float64, where Llama's rounds to float32 on the way."""
    folder = tmp_path_factory.mktemp("student")
    tokenizer = word_tokenizer(WORDS)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=256,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


METHODS = {
    "hindsearch": [],
    # the mean of a step's coefficients is over all ranks, and so is the number of rollouts with hindsight
    "baseline": ["loss.baseline._target_=hindsearch.losses.plain_clamp.BatchMean", "loss.low=-1", "reduction=sequence"],
    "moving teacher, several updates": ["loss=jsd", "teacher=ema", "teacher.rate=0.5", "updates=several"],
}


@pytest.mark.slow
@pytest.mark.parametrize("choices", METHODS.values(), ids=METHODS)
def test_two_ranks_are_one_rank_on_the_joined_batch(choices, student, tmp_path):
    common = [
        "experiment=quickstart",
        "student=folder",
        f"student.path={student}",
        "trainer.precision=64-true",
        "trainer.max_steps=2",
        "rollout.questions=4",
        "rollout.group_size=4",
        "data.validation_questions=5",
        "validation.every=2",
        # a random student earns nothing, so the policy term is still: hindsight on all its tokens moves it
        "critique=constant",
        "span=policy",
        "coefficient.weight=1.0",
        "learning.micro_batch_tokens=400",
        *choices,
    ]
    run("train", *common, f"paths.output_dir={tmp_path / 'one'}", cwd=tmp_path)
    two = ["trainer.devices=2", "trainer.strategy=ddp"]
    run("train", *common, *two, f"paths.output_dir={tmp_path / 'two'}", cwd=tmp_path)
    one_rank, two_ranks = weights(tmp_path / "one"), weights(tmp_path / "two")
    initial = GPT2LMHeadModel.from_pretrained(student).double().state_dict()
    for name, value in one_rank.items():
        torch.testing.assert_close(two_ranks[name], value, atol=1e-10, rtol=0)
    assert any(not torch.equal(initial[name.removeprefix("student.lm.")], value) for name, value in one_rank.items())
    last = [rows(tmp_path / name)[-1] for name in ("one", "two")]
    assert last[0]["val/questions"] == last[1]["val/questions"] == 5
