#!/usr/bin/env bash
# Runs the CUDA tests and some rows of the benchmark on a machine with a GPU, within LIMIT seconds (450), and leaves all
# results in $OUT, one file for each stage. A stage that fails or takes too long does not keep the next one from running.
# Prepared by tests/cuda/prepare.sh, which puts wheels and kernel trials into .gpu/, beside a Python 3.11 with torch for
# that machine (enter_bundle.sh, which sets PY311).
#
#   OUT=results tests/cuda/run_on_gpu.sh
#
# ROWS names workloads of bench/, RECORDED those that are also measured with mode="reduce-overhead", BASELINES those that are
# also measured under torch.compile by the machine's own python3.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:?OUT names the folder for results}
rows=${ROWS-tiny large softmax rms_norm residual_layer_norm cross_entropy}
baselines=${BASELINES-tiny large}
mkdir -p "$out"

started=$SECONDS
# limit MOST: seconds that a stage may take, at least 1, since timeout takes 0 for no limit
limit() {
    local left=$((${LIMIT:-450} - (SECONDS - started)))
    left=$((left < $1 ? left : $1))
    echo $((left > 0 ? left : 1))
}
# stage NAME MOST COMMAND…: its output goes to NAME.txt, and the end of that to the terminal
stage() {
    local name=$1 seconds
    seconds=$(limit "$2")
    shift 2
    printf '== %s (at most %d s)\n' "$name" "$seconds"
    timeout "$seconds" "$@" > "$out/$name.txt" 2>&1
    printf '== %s: status %d at %d s\n' "$name" $? $((SECONDS - started)) >> "$out/stages.txt"
    tail -n 3 "$out/$name.txt"
}
tests() { stage "$1" "$2" "$PY311" -m pytest -p no:cacheprovider -q --tb=short --junitxml="$out/$1.xml" "${@:3}"; }

. .gpu/enter_bundle.sh
site=$("$PY311" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# Unpacked rather than installed, as the machine's pip runs under another Python, which the wheel is not for.
for wheel in .gpu/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$site"; done
chmod +x "$site"/fusee/bin/*
export FUSEE_CACHE_DIR=$(mktemp -d)

stage machine 60 sh -c 'nvidia-smi; "$0" -m fusee doctor' "$PY311"
stage first_call 100 "$PY311" bench/first_call.py --device cuda --runs 2
trials=$(mktemp -d)
[ ! -e .gpu/trials.tar.xz ] || tar xf .gpu/trials.tar.xz -C "$trials"
FUSEE_CUDA_TRIALS=$trials tests kernels 90 tests/cuda/test_cuda_kernels.py
tests compiled 180 --ignore=tests/cuda/test_cuda_kernels.py tests/cuda
stage launch_parts 60 "$PY311" bench/launch_parts.py cuda
tests shim 60 -k cuda tests/shim

# bench COMPILER ROW PYTHON: the numbers of one process, appended to bench.jsonl
bench() {
    local name="bench-$2-${1//[.\/]/-}" numbers
    stage "$name" 90 "$3" bench/measure.py "$2" "$1" cuda
    numbers=$(grep '^{' "$out/$name.txt" | tail -n 1)
    printf '{"compiler": "%s", "workload": "%s", "numbers": %s}\n' "$1" "$2" "${numbers:-null}" >> "$out/bench.jsonl"
}
for row in $rows; do bench fusee "$row" "$PY311"; done
for row in ${RECORDED-decode_step deep_narrow}; do bench fusee/reduce-overhead "$row" "$PY311"; done
for row in $baselines; do bench torch.compile "$row" python3; done
cat "$out/stages.txt"
