import pytest
import torch
from torch import nn

from hindsearch.optim import MuonAdamW, PlainAdamW, WarmupDecay, set_rates


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.matrix = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4, bias=False).requires_grad_(False)
        self.lm_head = nn.Linear(4, 5, bias=False)


def test_muon_takes_the_inner_matrices_and_adamw_the_rest():
    model = Tiny()
    muon, adamw = MuonAdamW(matrix_lr=0.1, lr=0.01)(model)
    assert [id(p) for p in muon.param_groups[0]["params"]] == [id(model.matrix.weight)]
    rest = {id(p) for p in adamw.param_groups[0]["params"]}
    assert rest == {id(model.embed.weight), id(model.matrix.bias), id(model.lm_head.weight)}


def test_a_tied_head_is_no_matrix_of_muons():
    model = Tiny()
    model.lm_head.weight = model.embed.weight
    muon, adamw = MuonAdamW(matrix_lr=0.1, lr=0.01)(model)
    assert len(muon.param_groups[0]["params"]) == 1
    assert len(adamw.param_groups[0]["params"]) == 2


def test_plain_adamw_leaves_frozen_weights_alone():
    model = Tiny()
    (adamw,) = PlainAdamW(lr=0.01)(model)
    assert id(model.frozen.weight) not in {id(p) for p in adamw.param_groups[0]["params"]}
    assert len(adamw.param_groups[0]["params"]) == 4


def test_the_schedule_by_hand():
    schedule = WarmupDecay(warmup_steps=4, decay=0.5)
    assert [schedule(step, 10) for step in range(10)] == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert [WarmupDecay(0, 0.0)(step, 3) for step in range(3)] == [1, 1, 1]


def test_rates_are_set_from_the_first_ones_and_not_compounded():
    (optimizer,) = PlainAdamW(lr=0.5)(Tiny())
    for factor in (0.5, 0.5, 1.0):
        set_rates([optimizer], factor)
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    "build, said",
    [
        (lambda: MuonAdamW(matrix_lr=0, lr=1), "rates must be positive"),
        (lambda: PlainAdamW(lr=-1), "lr must be positive"),
        (lambda: WarmupDecay(warmup_steps=-1, decay=0.5), "0 or more"),
        (lambda: WarmupDecay(warmup_steps=1, decay=1.5), "within"),
    ],
)
def test_bad_numbers_are_refused(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_muon_moves_a_matrix_by_about_its_rate():
    model = Tiny()
    muon, _ = MuonAdamW(matrix_lr=0.1, lr=0.01)(model)
    before = model.matrix.weight.detach().clone()
    model.matrix.weight.grad = torch.eye(4)
    muon.step()
    # an orthogonal update of size 4, scaled by 0.2 * sqrt(4): every singular value moves by about 0.04
    moved = torch.linalg.svdvals(before - model.matrix.weight.detach())
    assert moved.tolist() == pytest.approx([0.04] * 4, rel=0.35)
