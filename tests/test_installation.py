"""The installed package: its command line, its entry points, and what the doctor finds with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

import fusee
import fusee_launcher

ROOT = Path(__file__).resolve().parent.parent


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line by this interpreter."""
    return subprocess.run([sys.executable, "-m", "fusee", *arguments], capture_output=True, text=True, check=False)


def test_one_version() -> None:
    assert command("--version").stdout.split()[-1] == version("fusee") == fusee.__version__


def test_script_is_the_binary() -> None:
    script = Path(sys.executable).parent / "fusee"
    if not script.exists():
        pytest.skip("fusee is not installed in this environment")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == command("--version").stdout


def linked_libraries(path: str | Path) -> set[str]:
    """The libraries that the loader brings for a binary, without their versions."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return {Path(line.split()[0]).name.partition(".so")[0] for line in listed.splitlines()}


def test_binary_needs_the_c_library_only() -> None:
    # It loads LLVM and NVRTC at run time without cgo, which takes the C library's loader and nothing else.
    allowed = {"linux-vdso", "libc", "libdl", "libpthread", "ld-linux-x86-64"}
    assert linked_libraries(fusee_launcher.binary()) <= allowed


def test_extension_links_neither_torch_nor_cuda() -> None:
    from fusee import _shim

    linked = linked_libraries(_shim.__file__)
    assert not {name for name in linked if "torch" in name or "cuda" in name or name == "libc10"}


def test_torch_finds_the_backend() -> None:
    found = entry_points(group="torch_dynamo_backends", name="fusee")
    assert [point.value for point in found] == ["fusee.backends:dynamo_backend"]


def test_doctor_finds_what_compiling_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEE_CACHE_DIR", str(tmp_path / "cache"))
    done = command("doctor", "--json")
    states = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout
    assert {states[name] for name in ("fusee", "Python", "torch", "LLVM", "disk cache")} == {"ok"}


def test_explain_reports_nothing_for_plain_python(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('ran with', sys.argv[1])\nsys.exit(5)\n", encoding="utf-8")
    done = command("explain", str(program), "--flag")
    assert done.returncode == 5
    assert "ran with --flag" in done.stdout
    assert "compiled nothing" in done.stdout


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A copy of the sources, and an interpreter with an editable installation of them beside this one's packages."""
    if not (ROOT / "setup.py").exists() or shutil.which("go") is None:
        pytest.skip("the sources or Go are not here")
    source, home = tmp_path_factory.mktemp("source") / "fusee", tmp_path_factory.mktemp("environment")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "*.so", "bin", "*.egg-info", "testdata"))
    venv.create(home, with_pip=False)
    (site,) = (home / "lib").glob("python*/site-packages")
    environment = dict(os.environ, PYTHONPATH=str(source / "scripts"))
    build = "import sys, build_backend; print(build_backend.build_editable(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(site)], cwd=source, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(site / done.stdout.split()[-1]) as wheel:
        wheel.extractall(site)
    (site / "zz_others.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )  # after the editable one
    return source, home / "bin" / "python"


def run(python: Path, *arguments: str) -> str:
    """What a program prints under an interpreter that sees no other copy of the package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, *arguments], env=environment, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_editable_installation_runs_from_the_sources(editable: tuple[Path, Path]) -> None:
    source, python = editable
    assert run(python, "-c", "import fusee, fusee._shim; print(fusee.__file__)").strip().startswith(str(source))
    assert run(python, "-m", "fusee", "--version") == command("--version").stdout
    assert (source / "python/fusee/bin/fusee").is_file()


DYNAMO = """
import torch

def f(x, y):
    return torch.relu(x + y) * 2

x, y = torch.linspace(-2, 2, 9), torch.ones(9)
assert "fusee" in torch._dynamo.list_backends()
assert torch.equal(torch.compile(f, backend="fusee")(x, y), f(x, y))
import fusee
print(fusee.__file__)
"""


def test_entry_point_gives_torch_the_backend(editable: tuple[Path, Path]) -> None:
    source, python = editable
    assert run(python, "-W", "error::UserWarning:fusee", "-c", DYNAMO).strip().startswith(str(source))
