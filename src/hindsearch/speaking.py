"""What goes wrong in a job, in one sentence and with an exit code."""

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from hindsearch.errors import JudgeError, RetrievalError, TrainingError, UserError

CODES: dict[type[Exception], int] = {UserError: 2, TrainingError: 1, RetrievalError: 1, JudgeError: 1}
"""2 for what the user can mend before a run, 1 for a run that broke."""


def run_job(verb: str, job: Callable[[DictConfig, Path], float], cfg: DictConfig) -> float:
    """Run a job in the folder that Hydra made for it.

    A single run that fails says why and exits. In a sweep the error goes on to Hydra, which names the job, runs the
    others and fails at the end. A folder in which nothing was written is taken away again.
    """
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        return job(cfg, folder)
    except tuple(CODES) as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        if HydraConfig.get().mode is not RunMode.RUN:
            raise
        if os.environ.get("LOCAL_RANK", "0") == "0":  # every rank meets the same mistake; one speaks
            print(f"hindsearch {verb}: {error}", file=sys.stderr)
        sys.exit(next(code for kind, code in CODES.items() if isinstance(error, kind)))
    finally:
        gc.collect()  # several jobs of a sweep share one process: no models are left behind
