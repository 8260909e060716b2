#!/bin/sh
# Builds the extension with the address and undefined-behaviour sanitizers and runs its tests under them.
# usage: shim/run_sanitized.sh [pytest arguments]; PYTHON names the interpreter that has torch and pytest.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mkdir "$build/fusee"
: >"$build/fusee/__init__.py"
gcc -shared -fPIC -std=c11 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Werror \
    -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -I"$here" -I"$include" "$here"/*.c -o "$build/fusee/_shim$suffix" -ldl
# CPython keeps what it interns until the end, and torch never frees its registries, so leaks are looked for by the
# tests' own reference counts.
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:handle_segv=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export FUSEE_FUZZ_ROUNDS="${FUSEE_FUZZ_ROUNDS:-5000}"
export PYTHONMALLOC=malloc PYTHONPATH="$build"
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
cd "$here/../tests/shim"
[ $# -gt 0 ] || set -- .
"$python" -m pytest -q -p no:cacheprovider --rootdir . --confcutdir . "$@"
