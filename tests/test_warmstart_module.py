from io import StringIO

import pytest
import torch
from lightning.pytorch import Trainer
from rich.console import Console
from torch import nn

from hindsearch.demonstration import Demonstration
from hindsearch.errors import TrainingError
from hindsearch.optim import PlainAdamW, WarmupDecay
from hindsearch.warmstart_module import DemonstrationSet, WarmStartModule, WarmStartProgress, micro_batches


class Bigrams(nn.Module):
    """A language model that sees the last token only."""

    def __init__(self, vocabulary=7):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(vocabulary, vocabulary)
        self.rows = 0

    def hidden(self, sequences, targets):
        return torch.cat([self.table(ids[t - 1]) for ids, t in zip(sequences, targets, strict=True)])

    def logprobs(self, hidden_ND):
        self.rows += len(hidden_ND)
        return hidden_ND.log_softmax(-1)


DEMONSTRATIONS = [
    Demonstration((1, 2, 3), (0.0, 1.0, 0.3)),
    Demonstration((4, 5, 6, 2, 1), (1.0, 1.0, 0.0, 0.0, 1.0)),
    Demonstration((3, 3), (0.0, 0.5)),
]


class Same:
    def __init__(self):
        self.asked = []

    def __call__(self, place, step, seed):
        self.asked.append((place, step))
        return DEMONSTRATIONS[place % 3]


def module_of(model, steps, micro_batch_tokens=1000, lr=0.1, max_grad_norm=1e9):
    return WarmStartModule(
        model, PlainAdamW(lr=lr), WarmupDecay(0, 0.0), steps, micro_batch_tokens, max_grad_norm=max_grad_norm
    )


def fit(module, steps, source=None, callbacks=()):
    source = source or Same()
    trainer = Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
    )
    trainer.fit(module, DemonstrationSet(source, steps, 3, seed=0).loader())
    return source


def test_the_loss_by_hand():
    model = Bigrams(vocabulary=7)
    nn.init.zeros_(model.table.weight)
    loss = module_of(model, 1).weighted_sum(DEMONSTRATIONS[:1])
    # two weighted tokens, each of log-probability -log 7
    assert loss.item() == pytest.approx(1.3 * torch.tensor(7.0).log().item())


def test_the_first_token_is_not_predicted_and_the_head_sees_weighted_tokens_only():
    model = Bigrams()
    module_of(model, 1).weighted_sum(DEMONSTRATIONS)
    assert model.rows == 2 + 2 + 1


@pytest.mark.parametrize("micro_batch_tokens", [1, 6, 10])
def test_micro_batches_change_nothing(micro_batch_tokens):
    whole, cut = Bigrams(), Bigrams()
    fit(module_of(whole, 3), 3)
    fit(module_of(cut, 3, micro_batch_tokens), 3)
    assert torch.allclose(whole.table.weight, cut.table.weight, atol=1e-6)


def test_micro_batches_hold_everything_once_within_the_limit():
    micros = micro_batches(DEMONSTRATIONS * 3, 10)
    assert sorted(len(d.ids) for micro in micros for d in micro) == [2, 2, 2, 3, 3, 3, 5, 5, 5]
    assert all(len(micro) * max(len(d.ids) for d in micro) <= 10 for micro in micros)
    assert [len(micro) for micro in micro_batches(DEMONSTRATIONS, 1)] == [1, 1, 1]


def test_five_steps_lower_the_loss():
    model = Bigrams()
    module = module_of(model, 5)
    before = module.weighted_sum(DEMONSTRATIONS).item()
    fit(module, 5)
    assert module.weighted_sum(DEMONSTRATIONS).item() < before - 0.5


def test_each_step_shows_its_own_demonstrations_once_and_none_is_fetched_ahead():
    seen = []

    class Source(Same):
        def __call__(self, place, step, seed):
            seen.append((place, step, model.table.weight.detach().clone()))
            return super().__call__(place, step, seed)

    model = Bigrams()
    source = fit(module_of(model, 4), 4, Source())
    assert source.asked == [(place, place // 3) for place in range(12)]
    # the weights change between steps, so no two steps drew under the same ones
    assert all(not torch.equal(seen[i][2], seen[i + 3][2]) for i in range(0, 9, 3))


def test_it_leaves_the_global_random_state_alone():
    model = Bigrams()
    before = torch.random.get_rng_state()
    fit(module_of(model, 2), 2)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_loss_that_is_not_finite_stops_the_run():
    model = Bigrams()
    nn.init.constant_(model.table.weight, float("nan"))
    with pytest.raises(TrainingError, match="step 0 of the warm start"):
        fit(module_of(model, 1), 1)


def test_the_gradient_is_bounded():
    model = Bigrams()
    before = model.table.weight.detach().clone()
    module = WarmStartModule(
        model, lambda m: [torch.optim.SGD(m.parameters(), lr=1.0)], WarmupDecay(0, 0.0), 1, 1000, max_grad_norm=0.01
    )
    fit(module, 1)
    assert (model.table.weight - before).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_progress_prints_lines_where_there_is_no_terminal():
    out = StringIO()
    fit(module_of(Bigrams(), 4), 4, callbacks=[WarmStartProgress(Console(file=out, width=100), 4, every=3)])
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("warm start · step 3/4 · loss ")
    assert lines[1].startswith("warm start · step 4/4 · loss ")
