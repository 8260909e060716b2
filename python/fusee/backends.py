"""What runs a captured graph: fusee's own kernels, the graph itself, torch's backends, or the user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from . import settings

if TYPE_CHECKING:
    import torch
    import torch.fx

Runner = Callable[..., Any]
Backend = Callable[["torch.fx.GraphModule", list[Any]], Runner]

_BUILT_IN = ("fusee", "eager", "aot_eager", "inductor")


def list_backends() -> list[str]:
    """Names that ``backend=`` takes."""
    return sorted(_BUILT_IN)


def check(backend: Any) -> str | Backend:
    """``backend`` if it is a known name or a callable; UnknownSetting otherwise. Names torch knows are taken too."""
    if not isinstance(backend, str):
        if callable(backend):
            return cast(Backend, backend)
        raise TypeError(f"backend is a name or a callable (gm, example_inputs), not {type(backend).__name__}")
    if backend not in _BUILT_IN and backend not in _torch_names():
        raise settings.unknown("backend", backend, [*_BUILT_IN, *_torch_names()])
    return backend


def _torch_names() -> list[str]:
    import torch._dynamo

    return [name for name in torch._dynamo.list_backends(exclude_tags=()) if name not in _BUILT_IN]


def lookup(backend: str | Backend) -> Backend | None:
    """The function ``(gm, example_inputs)`` of a backend; None for those that need no fx module."""
    if callable(backend):
        return backend
    if backend in ("fusee", "eager"):
        return None
    import torch._dynamo

    return torch._dynamo.lookup_backend(backend)


class Deferred:
    """A graph for another backend, which gets its first call's arguments as example inputs."""

    def __init__(self, module: Callable[[], torch.fx.GraphModule], backend: Backend) -> None:
        self._module = module
        self._backend = backend
        self._run: Runner | None = None

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the backend's callable on a graph's inputs."""
        if self._run is None:
            self._run = self._compile(list(inputs))
        outputs = self._run(*inputs)
        return outputs if type(outputs) is tuple else tuple(outputs)

    def _compile(self, inputs: list[Any]) -> Runner:
        from .host import miss

        with miss.paused():
            run = self._backend(self._module(), inputs)
        if not callable(run):
            raise TypeError(f"backend {self._backend!r} returned {type(run).__name__}, which cannot be called")
        return run


def dynamo_backend(module: torch.fx.GraphModule, example_inputs: list[Any], **options: Any) -> Runner:
    """The entry point for ``torch.compile(fn, backend="fusee")``: fusee's lowering under Dynamo's capture."""
    from .host.lower import compile_module

    return compile_module(module, example_inputs, settings.check(options.get("options")))
