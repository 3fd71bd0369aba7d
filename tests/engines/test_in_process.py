"""The engine against the model itself: log-probabilities, independence, greedy decoding, distribution, costs."""

import math
import random

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from hindsearch.engines.in_process import InProcess, draw
from hindsearch.errors import TrainingError, UserError
from hindsearch.models.causal_lm import CausalLM
from hindsearch.types import Sampling

VOCAB, END = 23, 1


class EndsAt:
    """A turn ends at one of some ids."""

    def __init__(self, *ids):
        self.candidates = frozenset(ids)

    def __call__(self, ids):
        assert ids[-1] in self.candidates
        return True


NEVER = EndsAt()


def llama(positions=256, dtype=torch.float32, attention="sdpa"):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=positions,
        initializer_range=0.25,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=END,
        attn_implementation=attention,
    )
    precision = "64-true" if dtype is torch.float64 else "32-true"
    return CausalLM(LlamaForCausalLM(config).to(dtype), precision)


def qwen2():
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        initializer_range=0.25,
        bos_token_id=None,
        eos_token_id=END,
    )
    return CausalLM(Qwen2ForCausalLM(config))


def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=128,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=END,
        eos_token_id=END,
        initializer_range=0.25,
    )
    return CausalLM(GPT2LMHeadModel(config))


def sampled(count, temperature=1.0, first=100):
    return [Sampling(temperature, first + i) for i in range(count)]


def prompts_of(count, seed=0):
    dice = random.Random(seed)
    return [[dice.randrange(2, VOCAB) for _ in range(1 + 3 * i % 7)] for i in range(count)]


def play(engine, prompts, copies, sampling, turns=4, limit=7, seed=0):
    """Several turns, observations of unequal length, rows that pause, return and leave; ids and log-probs per row."""
    session = engine.start(prompts, copies, sampling, EndsAt(END, 2))
    ids = [list(prompts[i // copies]) for i in range(len(sampling))]
    logprobs = [[None] * len(row) for row in ids]
    dice = random.Random(seed)
    for turn in range(turns):
        rows = [i for i in range(len(ids)) if turn == 0 or dice.random() < 0.7]
        dice.shuffle(rows)
        new = [[dice.randrange(VOCAB) for _ in range(dice.choice([0, 1, 2, 11]))] if turn else [] for _ in rows]
        limits = [dice.choice([0, 1, limit]) if turn else limit for _ in rows]
        for row, given, limit_, made in zip(rows, new, limits, session.extend(rows, new, limits), strict=True):
            assert len(made.ids) == len(made.logprobs) <= limit_
            ids[row] += [*given, *made.ids]
            logprobs[row] += [*[None] * len(given), *made.logprobs]
    return session, ids, logprobs


def scored(model, ids, logprobs):
    """The engine's log-probabilities and those of the model reading each whole sequence at once."""
    sequences = [torch.tensor(row) for row in ids]
    targets = [torch.tensor([i for i, p in enumerate(row) if p is not None], dtype=torch.long) for row in logprobs]
    with torch.no_grad():
        all_NV = model.logprobs(model.hidden(sequences, targets))
    tokens_N = torch.cat([s[t] for s, t in zip(sequences, targets, strict=True)])
    engine_N = torch.tensor([p for row in logprobs for p in row if p is not None], dtype=all_NV.dtype)
    return engine_N, all_NV.gather(-1, tokens_N[:, None]).squeeze(-1)


def difference(model, ids, logprobs):
    engine_N, model_N = scored(model, ids, logprobs)
    assert engine_N.numel() > 50
    return float((engine_N - model_N).abs().max())


@pytest.mark.parametrize("make", [llama, qwen2, gpt2, lambda: llama(attention="eager")])
@pytest.mark.parametrize("prefill_tokens", [1, 20, 10_000])
def test_logprobs_are_those_of_reading_the_whole_sequence_at_once(make, prefill_tokens):
    model = make()
    engine = InProcess(model, prefill_tokens=prefill_tokens, head_rows=3)
    _, ids, logprobs = play(engine, prompts_of(3), 4, sampled(12))
    assert difference(model, ids, logprobs) < 1e-4


def test_in_float64_they_agree_to_ten_digits():
    model = llama(dtype=torch.float64)
    _, ids, logprobs = play(InProcess(model), prompts_of(3), 4, sampled(12))
    assert difference(model, ids, logprobs) < 1e-10


def test_in_mixed_precision_they_agree_as_far_as_it_goes():
    model = CausalLM(llama().lm, "bf16-mixed")
    _, ids, logprobs = play(InProcess(model), prompts_of(3), 4, sampled(12))
    engine_N, model_N = scored(model, ids, logprobs)
    assert float((engine_N - model_N).abs().mean()) < 0.02


def test_the_buffer_grows_past_its_first_capacity():
    model = llama()
    session = InProcess(model).start([[3, 4], [5]], 2, sampled(4), NEVER)
    first = session.extend(range(4), [()] * 4, [50] * 4)
    second = session.extend([1, 3], [[7] * 50, [8]], [10, 40])
    ids = [[*prompt, *made.ids] for prompt, made in zip([[3, 4], [3, 4], [5], [5]], first, strict=True)]
    logprobs = [[None] * (len(row) - 50) + list(made.logprobs) for row, made in zip(ids, first, strict=True)]
    for row, given, made in ((1, [7] * 50, second[0]), (3, [8], second[1])):
        ids[row] += [*given, *made.ids]
        logprobs[row] += [*[None] * len(given), *made.logprobs]
    assert len(ids[1]) == 2 + 50 + 50 + 10
    assert difference(model, ids, logprobs) < 1e-4


def test_draws_depend_neither_on_the_batch_nor_on_its_order():
    engine, prompts, sampling = InProcess(llama()), prompts_of(4), sampled(4)
    together = engine.start(prompts, 1, sampling, EndsAt(END)).extend(range(4), [()] * 4, [12] * 4)
    backwards = engine.start(prompts[::-1], 1, sampling[::-1], EndsAt(END)).extend([3, 1, 0, 2], [()] * 4, [12] * 4)
    for i in range(4):
        (alone,) = engine.start([prompts[i]], 1, [sampling[i]], EndsAt(END)).extend([0], [()], [12])
        assert alone.ids == together[i].ids == backwards[[3, 1, 0, 2].index(3 - i)].ids
    assert len({made.ids for made in together}) == 4


def test_draws_do_not_depend_on_the_limit_or_on_the_global_random_state():
    engine = InProcess(llama())
    torch.manual_seed(5)
    (long,) = engine.start([[3]], 1, sampled(1), NEVER).extend([0], [()], [40])
    torch.manual_seed(6)
    state = torch.get_rng_state()
    (short,) = engine.start([[3]], 1, sampled(1), NEVER).extend([0], [()], [9])
    assert short.ids == long.ids[:9]
    assert torch.equal(torch.get_rng_state(), state)


def test_another_turn_draws_anew():
    """The same context twice, at the start of a turn and after an appended copy of it, in a model without memory."""
    model = llama()
    for layer in model.lm.model.layers:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)  # the next token depends on the last one alone
    session = InProcess(model).start([[3]], 1, sampled(1), NEVER)
    turns = [session.extend([0], [()] if i == 0 else [[3]], [12])[0].ids for i in range(3)]
    assert len(set(turns)) == 3


def test_greedy_is_the_library_models_greedy():
    model = llama()
    prompts = prompts_of(5, seed=3)
    made = (
        InProcess(model)
        .start(prompts, 1, sampled(5, temperature=0.0), EndsAt(END))
        .extend(range(5), [()] * 5, [20] * 5)
    )
    for prompt, generation in zip(prompts, made, strict=True):
        expected = model.lm.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=20)[0, len(prompt) :]
        assert list(generation.ids) == expected.tolist()


def test_greedy_and_sampled_rows_share_a_batch():
    engine, prompt = InProcess(llama()), [5, 6, 7]
    mixed = [Sampling(0.0, 1), Sampling(1.0, 2), Sampling(0.0, 3), Sampling(1.0, 4)]
    made = engine.start([prompt], 4, mixed, NEVER).extend(range(4), [()] * 4, [15] * 4)
    (greedy,) = engine.start([prompt], 1, [Sampling(0.0, 9)], NEVER).extend([0], [()], [15])
    (alone,) = engine.start([prompt], 1, [Sampling(1.0, 4)], NEVER).extend([0], [()], [15])
    assert made[0].ids == made[2].ids == greedy.ids
    assert made[3].ids == alone.ids
    assert len({made[0].ids, made[1].ids, made[3].ids}) == 3


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_frequencies_are_the_probabilities(temperature):
    model, count = llama(), 4000
    made = (
        InProcess(model)
        .start([[3, 9, 4]], count, sampled(count, temperature), NEVER)
        .extend(range(count), [()] * count, [1] * count)
    )
    with torch.no_grad():
        logprobs_V = model.logprobs(model.hidden([torch.tensor([3, 9, 4, 0])], [torch.tensor([3])]))[0]
    expected = (logprobs_V.double() / temperature).softmax(-1) * count
    seen = torch.bincount(torch.tensor([generation.ids[0] for generation in made]), minlength=VOCAB)
    common = expected >= 5
    chi2 = float(((seen - expected)[common] ** 2 / expected[common]).sum())
    degrees = int(common.sum()) - 1
    assert degrees > 5
    assert chi2 < degrees + 4 * math.sqrt(2 * degrees)
    # log-probabilities are at temperature 1 whatever the sampling temperature
    for generation in made[:50]:
        assert generation.logprobs[0] == pytest.approx(float(logprobs_V[generation.ids[0]]), abs=1e-5)


def test_the_inverse_of_the_distribution_by_hand():
    logprobs = torch.tensor([[0.25, 0.0, 0.5, 0.25, 0.0]], dtype=torch.float64).log().expand(6, 5)
    uniforms = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, 1 - 2**-53], dtype=torch.float64)
    assert draw(logprobs, uniforms, torch.ones(6)).tolist() == [0, 0, 2, 2, 3, 3]
    assert draw(logprobs, uniforms, torch.zeros(6)).tolist() == [2] * 6
    # at temperature 1/2 the probabilities are 1/6, 0, 4/6, 1/6, 0
    assert draw(logprobs, uniforms, torch.full((6,), 0.5)).tolist() == [0, 2, 2, 2, 2, 3]


def test_a_token_of_no_probability_is_never_drawn():
    logprobs = torch.full((500, 3), -math.inf)
    logprobs[:, 1] = 0.0
    uniforms = torch.linspace(0, 1 - 2**-53, 500, dtype=torch.float64)
    assert draw(logprobs, uniforms, torch.ones(500)).unique().tolist() == [1]


def test_a_turn_ends_at_its_end_and_keeps_the_token_that_ends_it():
    class EndsAtThirdFive:
        candidates = frozenset({5})
        asked = 0

        def __call__(self, ids):
            self.asked += 1
            return list(ids).count(5) == 3

    model, ends = llama(), EndsAtThirdFive()
    with torch.no_grad():
        model.lm.lm_head.weight[5] = model.lm.lm_head.weight[6]  # 5 and 6 are as likely as each other
    (made,) = InProcess(model).start([[3]], 1, sampled(1), ends).extend([0], [()], [200])
    assert len(made.ids) < 200
    assert made.ids[-1] == 5
    assert made.ids.count(5) == 3 == ends.asked


def test_every_token_is_read_once():
    engine = InProcess(llama())
    prompts = [[3, 4, 5, 6], [7, 8], [3, 4, 5, 6]]
    session = engine.start(prompts, 4, sampled(12), NEVER)
    assert session.prefilled_tokens == 4 + 2  # each distinct prompt once, for all copies
    session.extend(range(12), [()] * 12, [5] * 12)
    session.extend([0, 3], [[1, 2, 3], []], [5, 0])
    session.extend([3], [[9, 9]], [0])
    assert session.prefilled_tokens == 6 + 3 + 2
    assert session.generated_tokens == 12 * 5 + 5


def test_a_limit_of_zero_only_appends():
    engine = InProcess(llama())
    session = engine.start([[3, 4]], 1, sampled(1), NEVER)
    assert session.extend([0], [[5, 6]], [0])[0].ids == ()
    assert session.extend([0], [[7]], [0])[0].ids == ()
    (later,) = session.extend([0], [[8]], [6])
    (at_once,) = engine.start([[3, 4, 5, 6, 7, 8]], 1, sampled(1), NEVER).extend([0], [()], [6])
    assert later.ids == at_once.ids
    assert later.logprobs == pytest.approx(at_once.logprobs, abs=1e-5)


@pytest.mark.parametrize("make", [lambda: llama(positions=12), gpt2])
def test_a_row_stops_where_the_context_ends(make):
    model = make()
    room = model.max_positions
    session = InProcess(model).start([[3] * (room - 4), [4]], 1, sampled(2), NEVER)
    full, other = session.extend([0, 1], [(), ()], [9, 3])
    assert len(full.ids) == 4
    assert len(other.ids) == 3
    assert session.extend([0, 1], [(), [5]], [9, 2])[0].ids == ()
    with pytest.raises(UserError, match=f"{room + 1} tokens .* {room} positions"):
        session.extend([0], [[5]], [1])


def test_padding_ids_that_equal_the_end_mean_nothing():
    model = llama()
    assert model.lm.config.pad_token_id == END
    prompts = [[END, 5, END], [4, END, END, END, END, 6]]
    session = InProcess(model).start(prompts, 1, sampled(2), NEVER)
    made = session.extend([0, 1], [[END], [3, END, END]], [30, 30])
    given = [[END], [3, END, END]]
    ids = [[*p, *g, *m.ids] for p, g, m in zip(prompts, given, made, strict=True)]
    logprobs = [[None] * (len(row) - 30) + list(m.logprobs) for row, m in zip(ids, made, strict=True)]
    assert difference(model, ids, logprobs) < 1e-4


def test_modes_and_gradients_are_as_before_also_after_an_error():
    class Breaks:
        candidates = frozenset(range(VOCAB))

        def __call__(self, ids):
            raise RuntimeError("broken")

    model = llama().train()
    session = InProcess(model).start([[3]], 1, sampled(1), Breaks())
    assert model.training
    with pytest.raises(RuntimeError, match="broken"):
        session.extend([0], [()], [3])
    assert all(module.training for module in model.modules())
    assert torch.is_grad_enabled()


def test_diverged_weights_stop_the_run():
    model = llama()
    session = InProcess(model).start([[3]], 1, sampled(1), NEVER)
    with torch.no_grad():
        model.lm.lm_head.weight.fill_(math.nan)
    with pytest.raises(TrainingError, match="not numbers"):
        session.extend([0], [()], [3])


@pytest.mark.parametrize("option", ["prefill_tokens", "head_rows"])
def test_bad_options_are_refused(option):
    with pytest.raises(ValueError, match=f"engine.{option}=0"):
        InProcess(llama(), **{option: 0})
