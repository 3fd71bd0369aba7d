"""A method as it is chosen: its loss, credit, teacher, judge, and what they need of one another."""

from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from hindsearch.anchors.none import NoAnchor
from hindsearch.build.world import World
from hindsearch.critiques.none import NoCritiques
from hindsearch.errors import UserError
from hindsearch.interfaces import (
    Anchor,
    Credit,
    CritiqueGenerator,
    HindsightLoss,
    Judge,
    LanguageModel,
    Loop,
    Policy,
    Select,
    SpanChoice,
    Teacher,
)
from hindsearch.judge_backends.recording import Recorded
from hindsearch.judges.none import NoJudge
from hindsearch.loops import Joint
from hindsearch.losses.none import NoLoss
from hindsearch.making import make, parameters
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.snapshot import Snapshot
from hindsearch.objective import Objective
from hindsearch.teachers.current import Current
from hindsearch.tokens import Tokens

LABELS = "turn_labels"
"""The option of critique, judge and credit that belong together."""

GROUPS_OF_HINDSIGHT = (
    *("critique", "judge", "judge_backend", "teacher", "select", "span", "coefficient", "reduction"),
)


class Method:
    """Builds each choice on first use and once, and refuses those that do not fit together.

    Raises:
        UserError: at the first use of a choice whose needs are not met, in one sentence.
    """

    def __init__(self, cfg: DictConfig, world: World, output_dir: Path) -> None:
        self._cfg, self._world, self._output_dir = cfg, world, output_dir
        self._judge_model: CausalLM | None = None

    # ------------------------------------------------------------------ what acts

    @cached_property
    def policy(self) -> Policy:
        return make("policy", self._cfg.policy)

    @cached_property
    def anchor(self) -> Anchor:
        anchor = make("anchor", self._cfg.anchor)
        if not isinstance(anchor, NoAnchor) and self._cfg.learning.updates_per_rollout < 2:
            raise UserError(
                "this anchor compares with the policy that sampled, which the first update of a rollout batch is: "
                "use updates=several with it, or anchor=none"
            )
        return anchor

    @cached_property
    def loss(self) -> HindsightLoss:
        return make("loss", self._cfg.loss)

    @cached_property
    def credit(self) -> Credit:
        return make("credit", self._cfg.credit)

    @cached_property
    def loop(self) -> Loop:
        loop = make("loop", self._cfg.loop)
        if not isinstance(loop, Joint) and isinstance(self.loss, NoLoss):
            raise UserError("this loop has steps of hindsight alone, and loss=none leaves them empty; use loop=joint")
        return loop

    @cached_property
    def select(self) -> Select:
        return make("select", self._cfg.select)

    @cached_property
    def span(self) -> SpanChoice:
        return make("span", self._cfg.span)

    @cached_property
    def objective(self) -> Objective:
        return Objective(
            policy=self.policy,
            anchor=self.anchor,
            loss=self.loss,
            credit=self.credit,
            coefficient=make("coefficient", self._cfg.coefficient),
            loop=self.loop,
            hindsight_reduction=make("reduction", self._cfg.reduction),
            head_rows=self._cfg.learning.head_rows,
        )

    # ------------------------------------------------------------------ teacher

    @property
    def asks_teacher(self) -> bool:
        return self.loss.needs_teacher or self.credit.needs_teacher

    @cached_property
    def teacher(self) -> Teacher:
        """The chosen teacher; the student where nobody asks one."""
        return self._chosen_teacher if self.asks_teacher else Current(self._world.student)

    @cached_property
    def _chosen_teacher(self) -> Teacher:
        node, wanted = self._cfg.teacher, parameters(self._cfg.teacher)
        offers: dict[str, Any] = {"student": self._world.student, "loop": self.loop}
        if "teacher_model" in wanted:
            offers["teacher_model"], tokens, node = self._world.another_model("teacher", node)
            self._check_tokenizer(tokens)
            self._world.note(
                "the teacher is another model than the student; with a 7B teacher over a 3B student HindSearch "
                "collapsed (arXiv 2608.01597): watch val/em"
            )
        if "reference" in wanted:
            offers["reference"] = self._world.reference
        if "snapshot" in wanted:
            offers["snapshot"] = Snapshot(self._world.student)
        return make("teacher", node, **offers)

    def _check_tokenizer(self, tokens: Tokens) -> None:
        """The teacher scores the student's ids: both must mean the same by them."""
        theirs, ours = tokens.tokenizer.get_vocab(), self._world.tokens.tokenizer.get_vocab()
        differing = [token for token in {*theirs, *ours} if theirs.get(token) != ours.get(token)]
        if differing:
            raise UserError(
                f"the teacher's tokenizer is another than the student's ({len(differing)} entries differ, one is "
                f"{min(differing)!r}), so it cannot score the student's tokens; "
                "choose a teacher.model.path of the student's family"
            )

    # ------------------------------------------------------------------ critiques

    @property
    def learns_from_hindsight(self) -> bool:
        return not isinstance(self.loss, NoLoss) or self.credit.needs_teacher or self.credit.needs_labels

    @property
    def asks_judge(self) -> bool:
        return self.learns_from_hindsight and "judge_backend" in parameters(self._cfg.critique)

    @cached_property
    def judge(self) -> Judge:
        judge = make("judge", self._cfg.judge)
        if isinstance(judge, NoJudge):
            raise UserError("this critique asks a judge and judge=none; choose judge=gold, or critique=none")
        return judge

    @property
    def judge_model(self) -> CausalLM | None:
        """The model of a judge that is another model than the student, once it was built."""
        return self._judge_model

    @cached_property
    def judge_backend(self) -> Recorded:
        """Whoever writes the critiques; every reply is kept in critiques.jsonl, to be replayed."""
        node, world = self._cfg.judge_backend, self._world
        offers: dict[str, Any] = {"retriever": world.retriever, "tokens": world.tokens}
        wanted = parameters(node)
        if "engine" in wanted and "model" in node:
            self._judge_model, offers["tokens"], node = world.another_model("judge_backend", node)
            offers["engine"] = world.engine(self._judge_model)
        elif "engine" in wanted:
            offers["engine"] = world.engine(world.reference)
        backend = make("judge_backend", node, passages=world.data.passages(), **offers)
        return Recorded(backend, self._output_dir / "critiques.jsonl")

    @cached_property
    def critique(self) -> CritiqueGenerator:
        if not self.learns_from_hindsight:
            return NoCritiques()
        self._check_labels()
        node, world, wanted = self._cfg.critique, self._world, parameters(self._cfg.critique)
        offers: dict[str, Any] = {
            **{"tokens": world.tokens, "run_seed": self._cfg.seed, "student": world.student, "span": self.span},
            **{"renderer": world.renderer, "passages": world.data.passages(), "questions": world.data.train()},
        }
        if self.asks_judge:
            offers |= {"judge": self.judge, "judge_backend": self.judge_backend}
            self._note_equal_candidates()
        if "teacher" in wanted:
            offers["teacher"] = self._selecting_teacher
        critique = make("critique", node, **offers)
        if isinstance(critique, NoCritiques):
            raise UserError(
                "critique=none leaves the hindsight loss no token to act on; choose critique=trajectory "
                "(or constant, for loss=self_nll), or loss=none"
            )
        return critique

    @property
    def _selecting_teacher(self) -> LanguageModel:
        """Who reads the candidates of a critique."""
        return self.teacher.model

    def _check_labels(self) -> None:
        """A judge's labels are for a credit, a judge's text is for a teacher; one cannot stand for the other."""
        shows_labels = _names(self._cfg.critique, "LabelCritiques")
        judges_labels = _names(self._cfg.judge, "TurnLabelsJudge")
        if self.credit.needs_labels and not (shows_labels and judges_labels):
            raise UserError(
                f"this credit reads a judge's labels of turns; use critique={LABELS} and judge={LABELS} with it"
            )
        if shows_labels and not self.credit.needs_labels:
            raise UserError(
                f"critique={LABELS} shows the teacher nothing, and only credit={LABELS} reads it; "
                "choose another critique, or that credit"
            )
        if shows_labels and not isinstance(self.loss, NoLoss):
            raise UserError(
                f"critique={LABELS} shows the teacher nothing, so this loss has no token to act on; use loss=none"
            )
        if judges_labels and self.asks_judge and not shows_labels:
            raise UserError(
                f"judge={LABELS} labels turns and writes no hint; use critique={LABELS} and credit={LABELS} with it"
            )

    def _note_equal_candidates(self) -> None:
        candidates = OmegaConf.select(self._cfg.critique, "candidates") or 1
        temperature = OmegaConf.select(self._cfg.judge_backend, "temperature")
        if candidates > 1 and temperature == 0:
            self._world.note(
                f"the {candidates} candidates of a critique are equal at judge_backend.temperature=0; use more, say 1.0"
            )

    # ------------------------------------------------------------------ what is chosen in vain

    def idle(self) -> dict[str, str]:
        """Config groups whose choice changes nothing with the rest as it is, and why."""
        idle: dict[str, str] = {}
        if not self.learns_from_hindsight:
            return dict.fromkeys(GROUPS_OF_HINDSIGHT, "loss=none and this credit learn nothing from hindsight") | (
                self._idle_rounds()
            )
        if isinstance(self.loss, NoLoss):
            idle |= dict.fromkeys(("coefficient", "reduction"), "loss=none has no value to weigh")
        if not self.asks_judge:
            idle |= dict.fromkeys(("judge", "judge_backend"), "this critique asks no judge")
        if not self.asks_teacher:
            idle["teacher"] = "neither this loss nor this credit asks a teacher"
            if isinstance(self.loss, NoLoss):
                idle["span"] = "no token is scored by a teacher"
        return idle | self._idle_rounds()

    def _idle_rounds(self) -> dict[str, str]:
        return {"rounds": "rounds are those of loop=rounds"} if isinstance(self.loop, Joint) else {}


def _names(node: DictConfig, target: str) -> bool:
    return str(node.get("_target_", "")).endswith(f".{target}")
