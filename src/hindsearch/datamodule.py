"""Yields rollout groups made on the fly: a map-style dataset of questions whose collate function is the rollout."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, Dataset, Sampler

from hindsearch.collector import Attempts, Collector
from hindsearch.errors import UserError
from hindsearch.seeding import seed_of
from hindsearch.tensors import RolloutBatch
from hindsearch.types import AttemptBatch, Draw, Question

ENDLESS = 2**31 - 1
"""Batches of the one epoch: `trainer.max_steps` ends a run. A length keeps Lightning from fetching a batch ahead, which
would roll out with stale weights; an endless one keeps a checkpoint from ever standing at an epoch's end."""

Place = tuple[int, int, int]


class StepSampler(Sampler[list[Place]]):
    """Yields (step, slot, question index) for the slots of this rank; its whole state is ``next_step``.

    Questions come in an order shuffled anew each epoch; slot ``i`` of step ``s`` is place ``s * per_step + i`` of that
    endless order, whatever the number of ranks.
    """

    def __init__(self, num_questions: int, per_step: int, seed: int, rank: int, world_size: int) -> None:
        if per_step % world_size:
            raise UserError(
                f"rollout.questions={per_step} does not divide over {world_size} ranks; "
                f"{per_step // world_size * world_size or world_size} would"
            )
        share = per_step // world_size
        self.slots = range(rank * share, (rank + 1) * share)
        self.num_questions, self.per_step, self.seed = num_questions, per_step, seed
        self.next_step = 0

    def __len__(self) -> int:
        return ENDLESS

    def __iter__(self) -> Iterator[list[Place]]:
        epoch, order = -1, []
        while True:
            step = self.next_step
            places: list[Place] = []
            for slot in self.slots:
                now, position = divmod(step * self.per_step + slot, self.num_questions)
                if now != epoch:
                    epoch, order = now, self._order(now)
                places.append((step, slot, order[position]))
            # before the yield: while a batch is trained on, the next one to draw is already named
            self.next_step = step + 1
            yield places

    def _order(self, epoch: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed_of(self.seed, "order", epoch))
        return torch.randperm(self.num_questions, generator=generator).tolist()


class _Draws(Dataset[Draw]):
    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions

    def __getitem__(self, place: Place) -> Draw:  # type: ignore[override]
        step, slot, index = place
        return Draw(self.questions[index], step, slot)

    def __len__(self) -> int:
        return len(self.questions)


class RolloutDataModule(LightningDataModule):
    """Training steps from ``collector``, validation from ``validators`` (name to attempts; the first is greedy).

    Sampling runs in this process, between updates: there are no workers, which would hold a stale copy of the student.
    """

    def __init__(
        self,
        train: Sequence[Question],
        validation: Sequence[Question],
        collector: Collector,
        validators: dict[str, Attempts],
        questions_per_step: int,
        validation_batch: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.train, self.validation = train, validation
        self.collector, self.validators = collector, validators
        self.questions_per_step, self.validation_batch, self.seed = questions_per_step, validation_batch, seed
        self.next_step = 0
        self._sampler: StepSampler | None = None

    def train_dataloader(self) -> DataLoader[RolloutBatch]:
        rank, world_size = self._rank()
        self._sampler = StepSampler(len(self.train), self.questions_per_step, self.seed, rank, world_size)
        self._sampler.next_step = self.next_step
        return self._loader(self.train, self._sampler, self.collector)

    def val_dataloader(self) -> list[DataLoader[AttemptBatch]]:
        """One loader per validator, over every question of this rank's exact share, in file order."""
        rank, world_size = self._rank()
        places = [(0, i, i) for i in range(rank, len(self.validation), world_size)]
        batches = [places[i : i + self.validation_batch] for i in range(0, len(places), self.validation_batch)]
        return [self._loader(self.validation, batches, attempts) for attempts in self.validators.values()]

    def _loader(
        self, questions: Sequence[Question], places: Any, collate: Callable[[list[Draw]], Any]
    ) -> DataLoader[Any]:
        return DataLoader(_Draws(questions), batch_sampler=places, collate_fn=collate, num_workers=0)

    def _rank(self) -> tuple[int, int]:
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def state_dict(self) -> dict[str, Any]:
        return {"next_step": self._sampler.next_step if self._sampler else self.next_step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.next_step = int(state_dict["next_step"])
