"""Seeds are a function of place, not of history: resume, rank and job order change nothing."""

import hashlib


def seed_of(*place: int | str) -> int:
    """Return a 63-bit seed for a place such as ``(run_seed, "rollout", step, slot, index)``.

    The same place always gives the same seed, on every machine and in every process
    (``hash`` is salted per process, so a digest is used).
    """
    digest = hashlib.blake2b("\x1f".join(f"{type(p).__name__}:{p}" for p in place).encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1
