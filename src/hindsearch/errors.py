"""The errors a user can meet. Each carries one sentence: what was seen, where, what would work."""


class UserError(Exception):
    """Something the user can mend: an option, a file, a model folder. The command exits with code 2."""


class RetrievalError(Exception):
    """A retriever that stays down after its bounded retries. Never a score (design rule 11)."""


class JudgeError(Exception):
    """A judge that stays down, or whose reply cannot be read. Never a score (design rule 11)."""


class TrainingError(Exception):
    """A run that must not go on: non-finite values, a ratio that is not 1, too many failed rollouts."""
