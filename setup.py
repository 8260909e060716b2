"""The two parts of the wheel that setuptools has no table for: the C extension's sources and the Go binaries."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from setuptools import Command, Extension, setup
from setuptools.command.build import build

ROOT = Path(__file__).resolve().parent
PROGRAMS = ("fusee", "fusee-draw")
GO_LINKER_FLAGS = "-s -w"
C_FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]


def version() -> str:
    """The version the binary prints, so that there is one place to change it."""
    source = (ROOT / "cmd/fusee/version.go").read_text(encoding="utf-8")
    found = re.search(r'^const version = "([^"]+)"$', source, re.MULTILINE)
    if found is None:
        raise SystemExit('cmd/fusee/version.go: no line `const version = "…"`')
    return found.group(1)


def extensions() -> list[Extension]:
    """The extension `fusee._shim`, compiled from every C file of shim/."""
    sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("shim/*.c"))
    headers = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("shim/*.h"))
    return [Extension("fusee._shim", sources, depends=headers, include_dirs=["shim"], extra_compile_args=C_FLAGS)]


def go_environment() -> dict[str, str]:
    """The caller's environment, without cgo, and with a module cache even where there is no home directory."""
    environment = dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local")
    if not environment.get("HOME"):
        environment.setdefault("GOPATH", str(ROOT / "build/go"))
        environment.setdefault("GOCACHE", str(ROOT / "build/go-cache"))
    return environment


class BuildGo(Command):
    """`setup.py build_go`: compiles the programs of cmd/ into the package's folder bin."""

    description = "build the Go binaries"
    user_options = [("build-lib=", "d", "directory of the built package")]  # noqa: RUF012
    editable_mode = False

    def initialize_options(self) -> None:
        """Leaves the directory to the `build` command."""
        self.build_lib: str | None = None

    def finalize_options(self) -> None:
        """Takes the directory from the `build` command."""
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def folder(self) -> Path:
        """Where the binaries go: beside the sources in an editable install, else into the wheel's tree."""
        package = ROOT / "python" if self.editable_mode else ROOT / str(self.build_lib)
        return package / "fusee/bin"

    def run(self) -> None:
        """Builds the binaries; raises CalledProcessError where the Go compiler does."""
        self.folder().mkdir(parents=True, exist_ok=True)
        arguments = ["-trimpath", "-buildvcs=false", "-ldflags", GO_LINKER_FLAGS, "-o", str(self.folder())]
        programs = [f"./cmd/{name}" for name in PROGRAMS]
        subprocess.run(["go", "build", *arguments, *programs], cwd=ROOT, env=go_environment(), check=True)

    def get_source_files(self) -> list[str]:
        """Every Go file, for the source distribution."""
        return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("**/*.go"))

    def get_outputs(self) -> list[str]:
        """The files this command makes."""
        return [str(self.folder() / name) for name in PROGRAMS]

    def get_output_mapping(self) -> dict[str, str]:
        """Empty: no output is a copy of a source file."""
        return {}


class Build(build):
    """The standard build with the Go binaries as one more part."""

    sub_commands = [*build.sub_commands, ("build_go", None)]  # noqa: RUF012


setup(version=version(), ext_modules=extensions(), cmdclass={"build": Build, "build_go": BuildGo})
