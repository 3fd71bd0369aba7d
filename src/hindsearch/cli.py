"""`hindsearch <verb> …`: one console script; every verb is also `python -m hindsearch.<verb>`."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from hindsearch import __version__

VERBS = {
    "train": "train a search agent (Hydra overrides; -m sweeps)",
    "warmstart": "teach a model the format by supervised demonstrations (Hydra overrides)",
    "evaluate": "answer the validation questions with a checkpoint or model (Hydra overrides)",
    "score": "EM and F1 of a file of predictions or transcripts: score FILE [--out OUT]",
}


def usage() -> str:
    rows = "\n".join(f"  {verb:<10} {text}" for verb, text in VERBS.items())
    return f"usage: hindsearch VERB [ARGUMENTS]\n\n{rows}\n\nhindsearch VERB --help shows the verb's options."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns the exit code: 0, 1 for a run that broke, 2 for something the user can mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] == "--version":
        print(f"hindsearch {__version__}")
        return 0
    verb, *rest = arguments
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(VERBS)}"
        print(f"hindsearch: there is no verb {verb!r}; {hint}", file=sys.stderr)
        return 2
    if verb == "score":
        return importlib.import_module("hindsearch.score").main(rest)
    return run_hydra_verb(verb, rest)


def run_hydra_verb(verb: str, overrides: Sequence[str]) -> int:
    """Run a verb that Hydra composes, and put what goes wrong into one sentence."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from hindsearch.errors import JudgeError, RetrievalError, TrainingError, UserError
    from hindsearch.overrides import arguments_for, explain, refuse_unknown

    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come to us as they are, and we speak for them
    module = importlib.import_module(f"hindsearch.{verb}")
    script, old_argv, old_spec = sys.modules["__main__"], sys.argv, sys.modules["__main__"].__spec__
    sys.argv = [f"hindsearch {verb}", *arguments_for(overrides)]
    # Lightning starts further ranks by running __main__ again with these arguments: that is the verb's module
    script.__spec__ = module.__spec__
    try:
        refuse_unknown(verb, overrides)
        module.main()
    except SystemExit as stop:  # the job has spoken for itself
        return stop.code if isinstance(stop.code, int) else 0
    except UserError as error:
        print(f"hindsearch {verb}: {error}", file=sys.stderr)
        return 2
    except (HydraException, OmegaConfBaseException) as error:
        print(f"hindsearch {verb}: {explain(verb, error, overrides)}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        print(f"hindsearch {verb}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (TrainingError, RetrievalError, JudgeError) as error:
        print(f"hindsearch {verb}: {error}", file=sys.stderr)
        return 1
    finally:
        sys.argv, script.__spec__ = old_argv, old_spec
    return 0


if __name__ == "__main__":
    sys.exit(main())
