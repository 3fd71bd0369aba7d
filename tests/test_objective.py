"""What of a step counts where: filtered groups, several updates, labels, loops, and vocabularies of two sizes."""

from dataclasses import replace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hindsearch.anchors.llds import Llds
from hindsearch.anchors.none import NoAnchor
from hindsearch.coefficients import Constant
from hindsearch.credits.none import NoCredit
from hindsearch.credits.sspo import Sspo
from hindsearch.credits.turn_labels import TurnLabels
from hindsearch.loops import Joint, Rounds
from hindsearch.losses.none import NoLoss
from hindsearch.losses.openclaw import OpenClaw
from hindsearch.losses.plain_clamp import PlainClamp
from hindsearch.losses.reverse_kl import ReverseKl
from hindsearch.maths.reductions import TokenMean
from hindsearch.maths.supports import FullVocabulary
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.frozen import frozen_copy
from hindsearch.objective import Objective
from hindsearch.policies.grpo import Grpo
from hindsearch.policies.kl import Kl
from small_step import VOCABULARY, example, gradient, group, one_part, plan, tiny


@pytest.fixture(scope="module")
def student():
    return tiny(0)


@pytest.fixture(scope="module")
def teacher():
    return frozen_copy(tiny(1))


def objective(loss=None, credit=None, anchor=None, loop=None, coefficient=None) -> Objective:
    policy, coefficient = Grpo(kl=Kl(0.0), reduction=TokenMean()), coefficient or Constant(0.5)
    acting = (anchor or NoAnchor(), loss or NoLoss(), credit or NoCredit(), coefficient, loop or Joint())
    return Objective(policy, *acting, TokenMean())


# ---------------------------------------------------------------------- groups that the policy leaves out


def test_a_filtered_group_counts_in_no_policy_divisor_and_still_learns_from_hindsight():
    kept, filtered = example(0, 1.0, hindsight=False), replace(example(1, 0.0, hindsight=True), in_policy=False)
    whole = objective(PlainClamp())
    totals = whole.divisors([kept, filtered])
    assert float(totals[0]) == int(kept.loss_mask_T.sum())
    assert float(totals[1]) == int(filtered.hindsight_mask_T.sum())
    shares = whole.plan([kept, filtered], totals, step=0)
    assert [float(share.policy_weights_N.sum()) for share in shares] == pytest.approx([1.0, 0.0])
    assert [float(share.hindsight_weights_M.sum()) for share in shares] == pytest.approx([0.0, 1.0])


def test_a_filtered_group_moves_the_policy_term_of_the_others_up(student, teacher):
    examples = [example(0, 1.0, hindsight=False), example(1, 0.0, hindsight=False)]
    filtered = [examples[0], replace(examples[1], in_policy=False)]
    with_it, _ = gradient(objective(), student, teacher, examples)
    without, _ = gradient(objective(), student, teacher, filtered)
    tokens = [int(e.loss_mask_T.sum()) for e in examples]
    torch.testing.assert_close(without, with_it * sum(tokens) / tokens[0])


# ---------------------------------------------------------------------- credit


def test_under_sspo_a_step_without_selected_rollouts_is_grpo_to_the_bit(student, teacher):
    successes = [example(seed, a, hindsight=False) for seed, a in enumerate([0.7, 1.1, 0.2])]
    grpo, _ = gradient(objective(), student, teacher, successes)
    sspo, _ = gradient(objective(credit=Sspo()), student, teacher, successes)
    assert torch.equal(grpo, sspo)


def test_sspo_rescales_failed_rollouts_and_logs_by_how_much(student, teacher):
    failed = [example(seed, -1.0, hindsight=True) for seed in range(3)]
    grpo, _ = gradient(objective(), student, teacher, failed)
    sspo, _ = gradient(objective(credit=Sspo()), student, teacher, failed)
    assert (sspo - grpo).norm() > 1e-3
    part = one_part(objective(credit=Sspo()), student, teacher, plan(objective(credit=Sspo()), failed))
    total, count = part.means["credit/shift"]
    assert 0 < float(total / count) <= 1.0


def test_a_failed_group_learns_from_its_good_turns_alone(student, teacher):
    bad = group(all_equal=True)
    good = [replace(e, good_T=e.turn_T == 0) for e in bad]
    labelled = objective(credit=TurnLabels(share=0.25))
    assert plan(labelled, bad) == []
    got, _ = gradient(labelled, student, teacher, good)
    assert got.norm() > 1e-3


# ---------------------------------------------------------------------- several updates of one rollout batch


def moved(student: CausalLM, by: float = 0.05) -> CausalLM:
    other = tiny(0)
    other.load_state_dict(student.state_dict())
    with torch.no_grad():
        for name, weight in other.named_parameters():
            weight += by * torch.randn(weight.shape, generator=torch.Generator().manual_seed(len(name))).double()
    return other


def test_a_further_update_compares_with_the_first_on_the_same_entries(student, teacher):
    whole = objective(OpenClaw())
    shares = plan(whole, group())
    reading = whole.read(teacher, teacher, shares)
    first = whole(student, teacher, shares, reading, reading.gap_M, step=0)
    other = moved(student)
    second = whole(other, teacher, shares, reading, reading.gap_M, 0, first.old)
    assert second.old is first.old
    fresh = one_part(whole, other, teacher, shares)
    ratio, count = second.means["policy/ratio"]
    assert float(ratio / count) != pytest.approx(1.0, abs=1e-3)
    assert float(second.loss.detach()) != pytest.approx(float(fresh.loss.detach()), abs=1e-6)


def test_the_anchor_acts_from_the_second_update_on(student, teacher):
    whole = objective(anchor=Llds(0.2))
    shares = plan(whole, group())
    reading = whole.read(teacher, teacher, shares)
    first = whole(student, teacher, shares, reading, reading.gap_M, step=0)
    second = whole(moved(student), teacher, shares, reading, reading.gap_M, 0, first.old)
    assert float(first.sums["loss/anchor"]) == 0.0
    assert float(second.sums["loss/anchor"]) > 0.0


# ---------------------------------------------------------------------- rounds


def test_a_round_of_distillation_has_no_policy_term_and_one_of_policy_no_hindsight(student, teacher):
    whole = objective(PlainClamp(), loop=Rounds(policy_steps=2, distil_steps=1))
    for step, terms in [(0, {"loss/policy"}), (1, {"loss/policy"}), (2, {"loss/hindsight"}), (3, {"loss/policy"})]:
        shares = whole.plan(group(), whole.divisors(group()), step)
        reading = whole.read(teacher, teacher, shares)
        part = whole(student, teacher, shares, reading, reading.gap_M, step)
        assert set(part.sums) == terms
        assert whole.uses_critiques(step) == (terms == {"loss/hindsight"})


def test_critiques_are_asked_from_the_step_on_at_which_the_warm_up_ends():
    whole = objective(PlainClamp(), coefficient=Constant(0.1, warmup_steps=50))
    assert [whole.uses_critiques(step) for step in (0, 49, 50)] == [False, False, True]
    assert [whole.hindsight_weight(step) for step in (0, 49, 50)] == [0.0, 0.0, 0.1]


# ---------------------------------------------------------------------- vocabularies of two sizes


def padded(model: CausalLM, entries: int) -> CausalLM:
    """The same model with ``entries`` more rows of noise in its embedding and head."""
    config = GPT2Config(**{**model.lm.config.to_dict(), "vocab_size": VOCABULARY + entries, "eos_token_id": 1})
    lm = GPT2LMHeadModel(config).double()
    weights = model.lm.state_dict()
    rows = torch.randn(entries, 16, generator=torch.Generator().manual_seed(0)).double() - 5.0
    wide = torch.cat([weights["transformer.wte.weight"], rows])
    lm.load_state_dict({**weights, "transformer.wte.weight": wide, "lm_head.weight": wide})
    return CausalLM(lm, "64-true")


def test_a_teacher_of_a_wider_vocabulary_is_compared_on_the_shared_part(student, teacher):
    wide = frozen_copy(padded(tiny(1), 7))
    whole = objective(ReverseKl(FullVocabulary()))
    shares = plan(whole, group(all_equal=True))
    part = one_part(whole, student, wide, shares)
    part.loss.backward()
    assert part.old.support.ids_MK.shape[-1] == VOCABULARY
    assert torch.isfinite(part.loss)
    narrow = one_part(whole, student, teacher, shares)
    assert part.old.support.student_MK.equal(narrow.old.support.student_MK)
