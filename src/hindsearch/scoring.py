"""Exact match and F1 as the field computes them (SQuAD, arXiv 1606.05250, through Search-R1 and FlashRAG)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Lower-case, delete ASCII punctuation, blank the words a/an/the, squeeze white space; in this order.

    Unicode forms, accents and punctuation outside ASCII stay as they are, as in every public scorer.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """1.0 if the normalised prediction equals any normalised gold, else 0.0.

    Two texts that both normalise to nothing (``The The``, ``...``) are equal. ``golds`` must not be empty.
    """
    _refuse_no_golds(golds)
    normalised = normalise_answer(prediction)
    return float(any(normalised == normalise_answer(gold) for gold in golds))


def token_f1(prediction: str, golds: Sequence[str]) -> float:
    """Best token F1 over golds, with HotpotQA's rule for closed answers, as FlashRAG has it.

    Where either side is yes, no or noanswer and the two differ, F1 is 0: ``no`` earns nothing against ``No Country``.
    A side that normalises to nothing earns 0, also where EM is 1.
    """
    _refuse_no_golds(golds)
    return max(_f1(normalise_answer(prediction), normalise_answer(gold)) for gold in golds)


def _f1(prediction: str, gold: str) -> float:
    if prediction != gold and (prediction in _CLOSED or gold in _CLOSED):
        return 0.0
    predicted, wanted = prediction.split(), gold.split()
    shared = sum((Counter(predicted) & Counter(wanted)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _refuse_no_golds(golds: Sequence[str]) -> None:
    if not golds:
        raise ValueError("a prediction cannot be scored against no gold answer")
