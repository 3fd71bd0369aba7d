#!/usr/bin/env bash
# Three arms, three seeds, 100 steps each on the micro-world: about nine minutes on one core.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-outputs/00_quickstart}
hindsearch=${HINDSEARCH:-.venv/bin/hindsearch}
"$hindsearch" train -m experiment=quickstart method=grpo,hindsearch seed=0,1,2 paths.output_dir="$out/plain"
"$hindsearch" train -m experiment=quickstart select=all_fail_groups seed=0,1,2 paths.output_dir="$out/all_fail_groups"
