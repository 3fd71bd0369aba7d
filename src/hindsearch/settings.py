"""The numbers of a config that no component checks at its construction: kinds and least values."""

from omegaconf import DictConfig, OmegaConf

from hindsearch.errors import UserError

WHOLE: dict[str, int] = {
    "rollout.questions": 1,
    "rollout.group_size": 2,
    "learning.micro_batch_tokens": 1,
    "learning.head_rows": 1,
    "learning.updates_per_rollout": 1,
    "validation.every": 1,
    "validation.batch": 1,
    "checkpoint.every": 1,
    "log.rollouts_every": 1,
    "log.samples": 0,
    "optim.warmup_steps": 0,
    "trainer.max_steps": 1,
    "seed": 0,
}
"""Whole numbers and the least each may be."""

NUMBERS = ("rollout.max_failed", "optim.lr", "optim.weight_decay", "optim.max_grad_norm")
"""Numbers of 0 or more."""

WHY = {"rollout.group_size": ": one rollout alone has nothing to be compared with"}


def check_settings(cfg: DictConfig) -> None:
    """Refuse a setting of another kind, or one that is too small.

    Raises:
        UserError: naming the key, the value seen and what would do.
    """
    for key, least in WHOLE.items():
        value = OmegaConf.select(cfg, key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UserError(f"{key}={value} must be a whole number of at least {least}{WHY.get(key, '')}")
    for key in NUMBERS:
        value = OmegaConf.select(cfg, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise UserError(f"{key}={value} must be a number of 0 or more")
    threads = OmegaConf.select(cfg, "trainer.threads")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise UserError(f"trainer.threads={threads} must be a whole number of at least 1, or null for torch's choice")
    betas = OmegaConf.select(cfg, "optim.betas")
    if not OmegaConf.is_list(betas) or len(betas) != 2 or not all(isinstance(b, float) and 0 <= b < 1 for b in betas):
        raise UserError(f"optim.betas={betas} must be two numbers from 0 to below 1, for example [0.9,0.95]")
    devices = OmegaConf.select(cfg, "trainer.devices")
    if isinstance(devices, bool) or not isinstance(devices, int) or devices == 0:
        raise UserError(f"trainer.devices={devices} must be a number of devices, or -1 for all of them")
    if cfg.validation.sampled not in ("none", "one"):
        raise UserError(f"validation.sampled={cfg.validation.sampled} is neither none nor one")
