"""What is installed from a wheel runs from anywhere, with its config groups, templates and warm starts."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness import environment, rows

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_wheel_runs_away_from_its_checkout(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "installed")
    small = ["debug=one_step", "rollout.group_size=2", "data.validation_questions=4"]
    command = [sys.executable, "-m", "hindsearch.train", "experiment=quickstart", *small, "paths.output_dir=run"]
    place = environment() | {"PYTHONPATH": str(tmp_path / "installed")}
    where = "import hindsearch; print(hindsearch.__file__)"
    found = subprocess.run([sys.executable, "-c", where], cwd=tmp_path, env=place, capture_output=True, text=True)
    assert str(tmp_path / "installed") in found.stdout
    done = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "run")[-1]["step"] == 1
