#!/usr/bin/env bash
# Fills .gpu/ (not tracked) with what tests/cuda/run_on_gpu.sh takes to a machine with a GPU: fusee's wheel, those of the
# test suite that such a machine lacks, and the exported kernel trials. The Python for that machine (enter_bundle.sh and
# its archive) must be there already.
#
#   PYTHON=python3.11 FUSEE_TEST_PYTHON=… tests/cuda/prepare.sh [ARCHITECTURE]
#
# KEEP_TRIALS=1 leaves the trials of an earlier run, which take longest.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3.11}
mkdir -p .gpu
rm -rf .gpu/*.whl .gpu/wheels
"$python" -m pip wheel -q --no-deps -w .gpu/wheels .
"$python" -m pip wheel -q -w .gpu/wheels 'hypothesis==6.*'
[ -z "${KEEP_TRIALS:-}" ] || { du -sh .gpu; exit; }
trials=$(mktemp -d) && trap 'rm -rf "$trials"' EXIT
go test ./backend/cuda -run TestExport -count=1 -timeout 20m -export "$trials" -architecture "${1:-sm_90}"
tar cf - -C "$trials" . | xz -T0 -3 > .gpu/trials.tar.xz
du -sh .gpu
