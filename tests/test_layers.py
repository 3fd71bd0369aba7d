"""The house keeps its shape: arrows point down, siblings do not import each other, few rooms know the big libraries."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "hindsearch"

LAYERS = [
    {
        *(
            "types",
            "tensors",
            "interfaces",
            "errors",
            "seeding",
            "protocol",
            "tokens",
            "scoring",
            "prompts",
            "hints",
            "grammar",
            "siblings",
            "heads",
            "micro_batch",
            "placements",
            "user_prompt",
        ),
        *("leaks", "transcripts", "passage_graph"),
        "demonstration",
        *("jsonl", "records", "metrics", "fingerprint", "maths", "budget", "observations"),
    },
    {
        *("anchors", "policies", "losses", "credits", "rewards", "judges", "judge_backends", "critiques", "teachers"),
        *(
            "retrievers",
            "models",
            "engines",
            "renderers",
            "data",
            "selects",
            "selections",
            "spans",
            "coefficients",
            "loops",
            "optim",
        ),
    },
    {"agent", "collector", "objective"},
    {"module", "datamodule", "callbacks", "warmstart_module"},
    {"making", "settings", "build"},
    {"train", "evaluate", "warmstart", "score", "overrides", "speaking", "resuming", "cli"},
]
GROUND = {"judges.prompted", "models.causal_lm", "engines.kv_buffer", "data.rows", "data.questions", "data.corpus"}
"""What the variants of a room stand on together: the only neighbours that may be imported."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
LIGHTNING = {"module", "datamodule", "callbacks", "warmstart_module", "build", "warmstart"}
HYDRA = {"making", "settings", "build", *LAYERS[5]} - {"score"}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_a_file_imports_only_from_below(path):
    here = room(path)
    assert here in LEVEL, f"{here} has no layer yet: say in which it belongs"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "hindsearch" or len(parts) < 2 or parts[1] not in LEVEL:
            continue
        there = parts[1]
        if there == here:
            is_sibling = LEVEL[here] == 1 and (SOURCE / here).is_dir() and path.stem not in parts
            assert not is_sibling or ".".join(parts[1:3]) in GROUND, f"{path.name} imports its sibling {name}"
        elif LEVEL[there] == 1 == LEVEL[here]:
            pytest.fail(f"{path.name} imports {name}, which is beside it")
        else:
            assert LEVEL[there] <= LEVEL[here], f"{path.name} imports {name}, which is above it"


@pytest.mark.parametrize(
    "library, rooms", [("lightning", LIGHTNING), ("hydra", HYDRA), ("omegaconf", HYDRA)], ids=lambda x: str(x)[:10]
)
def test_few_rooms_know_the_big_libraries(library, rooms):
    knowing = {room(path) for path in FILES if any(name.split(".")[0] == library for name in imports(path))}
    assert knowing <= rooms


def test_no_file_is_two_ideas():
    long = {p.name: n for p in FILES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 320}
    assert not long
