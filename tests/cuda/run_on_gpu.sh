#!/usr/bin/env bash
# Runs the CUDA tests and some rows of the benchmark on a machine with a GPU, within LIMIT seconds (480), and leaves all
# results in $OUT. Prepared by tests/cuda/prepare.sh, which puts into .gpu/: a Python 3.11 with torch for that machine
# (enter_bundle.sh, which sets PY311), fusee's wheel, and the exported kernel trials.
#
#   OUT=results tests/cuda/run_on_gpu.sh
#
# ROWS names workloads of bench/, BASELINES those that are also measured under torch.compile by the machine's own python3.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:?OUT names the folder for results}
rows=${ROWS-tiny large softmax rms_norm residual_layer_norm cross_entropy}
baselines=${BASELINES-tiny large}
mkdir -p "$out"

started=$SECONDS
left() { # never 0, which timeout takes for no limit
    local seconds=$((${LIMIT:-480} - (SECONDS - started)))
    echo $((seconds > 0 ? seconds : 1))
}
stage() { printf '== %s (%d s left)\n' "$1" "$(left)" | tee -a "$out/stages.txt"; }

stage 'entering the bundle'
. .gpu/enter_bundle.sh
export FUSEE_CACHE_DIR=$(mktemp -d)
{ nvidia-smi; "$PY311" -m fusee doctor; } > "$out/machine.txt" 2>&1

stage 'the example'
timeout 60 "$PY311" - > "$out/example.txt" 2>&1 <<'PYTHON'
import time, torch, fusee
@fusee.compile
def f(x, y):
    z = x + y
    return torch.relu(z) * 2
x = torch.tensor([1., -2., 3., -4.], device="cuda"); y = torch.full((4,), .5, device="cuda")
torch.relu(x + y) * 2
torch.cuda.synchronize()
start = time.perf_counter()
print(f(x, y), "first call", time.perf_counter() - start, "s")
print(f(x, y), fusee.stats())
PYTHON
tail -3 "$out/example.txt"

stage 'kernel trials'
if [ -e .gpu/trials.tar.xz ]; then
    trials=$(mktemp -d)
    tar xf .gpu/trials.tar.xz -C "$trials"
    FUSEE_CUDA_TRIALS=$trials timeout "$(left)" "$PY311" -m pytest -p no:cacheprovider -q --tb=short tests/cuda/test_cuda_kernels.py \
        --junitxml="$out/kernels.xml" > "$out/kernels.txt" 2>&1
    tail -3 "$out/kernels.txt"
fi

stage 'compiled functions'
timeout "$(left)" "$PY311" -m pytest -p no:cacheprovider -q --tb=short -k cuda --deselect tests/cuda/test_cuda_kernels.py \
    tests/cuda tests/shim --junitxml="$out/compiled.xml" \
    > "$out/compiled.txt" 2>&1
tail -3 "$out/compiled.txt"

stage 'benchmark'
# bench COMPILER ROW PYTHON: the numbers of one process, appended to bench.jsonl
bench() {
    [ "$(left)" -gt 15 ] || return
    local numbers
    numbers=$(timeout "$(left)" "$3" bench/measure.py "$2" "$1" cuda 2>> "$out/bench.err" | tail -1)
    printf '{"compiler": "%s", "workload": "%s", "numbers": %s}\n' "$1" "$2" "${numbers:-null}" | tee -a "$out/bench.jsonl"
}
for row in $rows; do bench fusee "$row" "$PY311"; done
for row in $rows; do
    case " $baselines " in *" $row "*) bench torch.compile "$row" python3 ;; esac
done
stage 'done'
