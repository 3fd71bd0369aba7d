import json
import os
import shutil
import signal
import subprocess
import sys
from io import StringIO

import pytest
import torch
from omegaconf import OmegaConf
from rich.console import Console
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from hindsearch import warmstart
from hindsearch.data.microworld import MicroWorld
from hindsearch.errors import UserError
from hindsearch.grammar import observation_text, search_turn
from hindsearch.making import conf_dir
from hindsearch.warmstart import SHIPPED, WarmStarted, publish, resolve_warm_start

RECIPES = sorted(path.stem for path in (conf_dir() / "recipe").glob("micro_*.yaml"))


def recipe(name="micro_h", **changes):
    return OmegaConf.merge(OmegaConf.load(conf_dir() / "recipe" / f"{name}.yaml"), changes)


def short(**changes):
    return recipe(**{"steps": 3, "batch": 4, **changes})


def quiet():
    return Console(file=StringIO(), width=200)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return cache, resolve_warm_start(short(), cache, quiet())


def refuse_to_train(*_):
    raise AssertionError("this would have trained")


def test_the_product_is_a_hugging_face_folder_with_its_recipe(made):
    _, folder = made
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert model.config.vocab_size == len(tokenizer)
    assert model.dtype == torch.float32
    record = json.loads((folder / "recipe.json").read_text())
    assert record["recipe"] == OmegaConf.to_container(short())
    assert record["hash"] == folder.name
    assert set(record["inputs"]) == {"words"}


def test_what_is_in_the_cache_is_not_made_again(made, monkeypatch):
    cache, folder = made
    monkeypatch.setattr(warmstart, "warm_start", refuse_to_train)
    assert resolve_warm_start(short(), cache, quiet()) == folder


@pytest.mark.parametrize("change", [{"seed": 9}, {"steps": 4}, {"demonstrations": {"right_relation": 0.5}}])
def test_another_recipe_is_another_product(made, monkeypatch, change):
    cache, _ = made
    monkeypatch.setattr(warmstart, "warm_start", refuse_to_train)
    with pytest.raises(AssertionError, match="would have trained"):
        resolve_warm_start(short(**change), cache, quiet())


def test_another_revision_of_the_code_is_another_product(made, monkeypatch):
    cache, _ = made
    monkeypatch.setattr(warmstart, "warm_start", refuse_to_train)
    monkeypatch.setattr(warmstart, "REVISION", warmstart.REVISION + 1)
    with pytest.raises(AssertionError, match="would have trained"):
        resolve_warm_start(short(), cache, quiet())


def test_one_recipe_gives_one_set_of_weights(made, tmp_path):
    _, folder = made
    torch.manual_seed(123)  # must not matter
    again = resolve_warm_start(short(), tmp_path, quiet())
    first, second = load_file(folder / "model.safetensors"), load_file(again / "model.safetensors")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_that_breaks_while_it_saves_leaves_nothing(tmp_path, monkeypatch):
    from transformers import PreTrainedTokenizerFast

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(PreTrainedTokenizerFast, "save_pretrained", full)
    with pytest.raises(OSError, match="no space left"):
        resolve_warm_start(short(), tmp_path, quiet())
    assert list((tmp_path / "warmstarts").iterdir()) == []


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_nothing(tmp_path):
    code = f"""
import pathlib
from omegaconf import OmegaConf
from rich.console import Console
from hindsearch.making import conf_dir
from hindsearch.warmstart import resolve_warm_start
recipe = OmegaConf.load(conf_dir() / "recipe" / "micro_h.yaml")
recipe.steps, recipe.batch = 100_000, 4
resolve_warm_start(recipe, pathlib.Path({str(tmp_path)!r}), Console())
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert child.stdout is not None
        while not (line := child.stdout.readline()).startswith("warm start · step"):
            assert line, "it ended before a step was done"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert list(tmp_path.rglob("*")) == []


def test_the_second_of_two_to_finish_keeps_the_first_ones(made, tmp_path):
    _, folder = made
    target = tmp_path / "target"
    publish(folder, target)
    (target / "mark").touch()
    publish(folder, target)
    assert (target / "mark").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_folder_with_a_torn_record_is_not_taken_for_a_product(made, tmp_path, monkeypatch):
    _, folder = made
    torn = tmp_path / "warmstarts" / folder.name
    shutil.copytree(folder, torn)
    (torn / "recipe.json").write_text('{"recipe": {')
    monkeypatch.setattr(warmstart, "warm_start", refuse_to_train)
    with pytest.raises(AssertionError, match="would have trained"):
        resolve_warm_start(short(), tmp_path, quiet())


def test_a_recipe_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is no recipe 'micro_z'; choose one of .*micro_h"):
        WarmStarted("micro_z", 0, tmp_path)


@pytest.mark.parametrize("name", RECIPES)
def test_regimes_differ_only_in_what_they_say(name):
    h, other = recipe("micro_h"), recipe(name)
    assert other.name == name
    larger = {"base"} if name == "micro_l" else set()  # the larger teacher is another model
    for key in {"base", "optimizer", "schedule"} - larger:
        assert h[key] == other[key]


def test_the_student_is_as_the_rest_of_the_program_wants_it(made, monkeypatch):
    cache, folder = made
    monkeypatch.setattr(WarmStarted, "folder", folder)
    student = WarmStarted("micro_h", 0, cache)
    model, ids = student.load("32-true"), torch.tensor(student.tokenizer().encode("what is"))
    logprobs_NV = model.logprobs(model.hidden([ids], [torch.tensor([1])]))
    assert logprobs_NV.shape == (1, len(student.tokenizer()))
    assert student.load("64-true").lm.dtype == torch.float64


# ------------------------------------------------------------------------------------------ what is shipped


@pytest.mark.parametrize("name, seed", [("micro_h", 0), ("micro_h", 1), ("micro_x", 0), ("micro_x", 1)])
def test_the_shipped_warm_start_is_what_its_recipe_makes(name, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(warmstart, "warm_start", refuse_to_train)
    folder = WarmStarted(name, seed, tmp_path).folder
    assert folder == SHIPPED / f"{name}-s{seed}"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2_000_000


def query_logprobs(model, tokenizer, prompt, question, passage):
    """Log-probability of the second right query after the first right passage."""
    context = f"{prompt} {question.text} {search_turn(question.chain[0])}{observation_text(passage.text)}"
    given, query = tokenizer.encode(context), tokenizer.encode(search_turn(question.chain[1]))
    with torch.no_grad():
        logprobs = model(input_ids=torch.tensor([given + query])).logits[0].log_softmax(-1)
    return sum(logprobs[len(given) + i - 1, id].item() for i, id in enumerate(query))


@pytest.mark.parametrize("name, seed", [("micro_h", 0), ("micro_h", 1), ("micro_x", 0), ("micro_x", 1)])
def test_the_shipped_warm_start_reads_hints(name, seed):
    folder = SHIPPED / f"{name}-s{seed}"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    world = MicroWorld()
    passages = {passage.id: passage for passage in world.passages()}
    gaps = []
    for question in world.validation()[:40]:
        passage = passages[question.evidence[0]]
        steps = " , ".join(f"then search {query}" for query in question.chain[1:])
        hint = f"<HINT> first search {question.chain[0]} , {steps} , then answer </HINT>"
        gaps.append(
            query_logprobs(model, tokenizer, hint, question, passage)
            - query_logprobs(model, tokenizer, "", question, passage)
        )
    assert sum(gaps) / len(gaps) > 1.0


# ------------------------------------------------------------------------------------------ real base models


def test_a_base_folder_and_a_file_of_demonstrations(made, tmp_path):
    _, base = made
    lines = [
        {
            "question": question.text,
            "turns": [
                {"text": search_turn(question.chain[0]), "observation": " <information> invalid </information> "},
                {"text": f"<think> country </think> <answer> {question.golds[0]} </answer>", "observation": ""},
            ],
        }
        for question in MicroWorld().train()[:8]
    ]
    file = tmp_path / "demonstrations.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    changes = {
        "base": {"path": str(base)},
        "demonstrations": {"path": str(file)},
        "renderer": {"templates": "micro"},
        "optimizer": {"lr": 0.01},
        "steps": 5,
        "batch": 8,
        "accelerator": "cpu",
        "precision": "32-true",
    }
    files = recipe("files", **changes)
    folder = resolve_warm_start(files, tmp_path / "cache", quiet())
    assert set(json.loads((folder / "recipe.json").read_text())["inputs"]) == {"base", "demonstrations"}
    before, after = (AutoModelForCausalLM.from_pretrained(path) for path in (base, folder))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([tokenizer.encode(lines[0]["question"] + " " + lines[0]["turns"][0]["text"])])
    with torch.no_grad():
        assert after(ids, labels=ids).loss < before(ids, labels=ids).loss - 0.1
    # another file is another recipe
    file.write_text("\n".join(map(json.dumps, lines[:4])))
    assert resolve_warm_start(files, tmp_path / "cache", quiet()) != folder


def test_a_folder_that_holds_no_model_is_refused(tmp_path):
    files = recipe("files", base={"path": str(tmp_path)}, demonstrations={"path": "x"})
    with pytest.raises(UserError, match=r"has no config\.json"):
        resolve_warm_start(files, tmp_path, quiet())


def test_a_path_that_is_not_given_is_asked_for(tmp_path):
    with pytest.raises(UserError, match=r"recipe\.base.*path"):
        resolve_warm_start(recipe("files"), tmp_path, quiet())
