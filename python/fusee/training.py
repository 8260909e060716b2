"""Graphs that autograd records: two launch plans in one ``torch.autograd.Function`` (docs/contracts.md, section 5)."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from . import _random, _shim, pygraph

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Sequence[Tensor]
    Gradients = Sequence[Tensor | None]

Run = Callable[..., tuple[Any, ...]]
RandomStates = Sequence[_random.State]
Changes = tuple[tuple[int, ...], tuple[int, ...]]  # the places of the inputs and of the results that changed
Layout = tuple[tuple[int, ...], tuple[int, ...]]  # sizes and strides, in elements


class TrainedGraph:
    """A callable of the graph's inputs that returns the tuple of its outputs, with gradients."""

    def __init__(self, graph: dict[str, Any], value: pygraph.Value) -> None:
        """``graph`` is a graph of section 5 with ``runs`` "training"; ``value`` turns references into live objects."""
        training = graph["training"]
        # A result that is used again would keep the whole history of the call before alive.
        self.forward = _shim.LaunchPlan({**training["forward"], "fresh": True})
        self.backward = _shim.LaunchPlan({**training["backward"], "fresh": True, "consumes": True})
        self.results: int = training["results"]
        self.differentiable: list[bool] = training["differentiable"]
        self.saved: list[tuple[str, int]] = [tuple(place) for place in training["saved"]]
        self.given: list[tuple[Any, ...]] = training["given"]
        self.layouts: list[Layout] = [(tuple(metadata[2]), tuple(metadata[3])) for metadata in self.given]
        self.numbers: list[Callable[[Tensors], Any]] = [_reader(*place) for place in training.get("numbers", ())]
        self.gradients: list[int] = training["gradients"]
        self.needs: list[list[int]] = training["needs"]
        self.linear: bool = training["linear"]
        self.changed: list[int] = training["changed"]
        self.random: list[str] = training["random"]
        self.inputs = len(graph["inputs"])
        # The sets of changed tensors, with the gradients that there were, that autograd would go back in spite of.
        self.harmless: set[tuple[Changes, tuple[int, ...]]] = set()
        self.replay: Run = pygraph.as_function(graph, value)
        outputs = training["outputs"]
        self._outputs: Run | None = pygraph.as_function(outputs, value) if outputs else None
        self._apply = _function().apply
        import torch

        self._recording: Callable[[], bool] = torch.is_grad_enabled
        self._recorded: Callable[[], Any] = torch.enable_grad

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        if self._recording():
            return self._run(inputs)
        with self._recorded():  # the program turns grad mode on, which it finds off, in the graph
            return self._run(inputs)

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        results = self._apply(self, *inputs)
        return results if self._outputs is None else self._outputs(*inputs, *results)

    def chosen(self, results: Sequence[Any], differentiable: bool = True) -> list[Any]:
        """Those of the results, or of what is given for each, that are differentiable, or those that are not."""
        return [one for one, is_so in zip(results, self.differentiable, strict=True) if is_so == differentiable]

    def layouts_of(self, results: Tensors) -> list[Layout]:
        """The sizes and strides of the gradient of each differentiable result: those of the result."""
        if not self.numbers:
            return self.layouts
        return [(tuple(result.shape), result.stride()) for result in self.chosen(results)]

    def fitted(self, gradient: Tensor | None, place: int, layout: Layout) -> Tensor:
        """The gradient of the differentiable result number ``place`` in the layout that the plan reads; None is 0."""
        strides = layout[1]
        if gradient is None:
            return self._zeros(place, layout)
        if gradient.stride() == strides and not gradient.is_conj() and not gradient.is_neg():
            return gradient
        import torch

        laid_out = torch.empty_strided(gradient.shape, strides, dtype=gradient.dtype, device=gradient.device)
        return laid_out.copy_(gradient)

    def _zeros(self, place: int, layout: Layout) -> Tensor:
        import torch

        dtype, device = self.given[place][:2]
        return torch.empty_strided(*layout, dtype=getattr(torch, dtype), device=device).zero_()

    def flowing(self, found: Tensors, given: Gradients) -> Gradients | None:
        """What the plan found with zeros for gradients that are missing, as autograd would have it.

        None for an input that only results without a gradient lead to. None for all where something is not finite:
        a zero may have met an infinite derivative, which autograd would not have looked at.
        """
        present = {place for place, gradient in enumerate(given) if gradient is not None}
        mixed = [
            one for one, needs in zip(found, self.needs, strict=True) if 0 < len(present & set(needs)) < len(needs)
        ]
        if not _all_finite(mixed):
            return None
        return [one if present & set(needs) else None for one, needs in zip(found, self.needs, strict=True)]

    def by_input(self, gradients: Gradients) -> tuple[Any, ...]:
        """What ``backward`` returns: nothing for the graph itself, then a gradient or None for each input."""
        found: list[Any] = [None] * (self.inputs + 1)
        for index, gradient in zip(self.gradients, gradients, strict=True):
            found[index + 1] = gradient
        return tuple(found)

    def random_states(self) -> RandomStates:
        """The states of the generators that forward draws from."""
        return [_random.state_of(device) for device in self.random]

    def replayed(self, inputs: Tensors, random_states: RandomStates) -> tuple[Any, ...]:
        """The results under autograd, with the random numbers that follow ``random_states``."""
        if not random_states:
            return self.replay(*inputs)
        import torch

        with torch.random.fork_rng(devices=[_random.number_of(device) for device in self.random if device != "cpu"]):
            for device, state in zip(self.random, random_states, strict=True):
                _random.set_back(device, state)
            return self.replay(*inputs)

    def recomputed(
        self, inputs: Tensors, given: Gradients, random_states: RandomStates, freed: Collection[int] = ()
    ) -> tuple[Any, ...]:
        """Gradients by running the graph again under autograd; differentiable where gradients are recorded now.

        Backward has gone through the histories of the differentiable results ``freed`` before. Raises RuntimeError, as
        autograd does, where it would need what operations saved there.
        """
        import torch

        create_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            # Aliases, so that nothing before the graph is differentiated too where one input comes from another.
            local = [tensor.view_as(tensor) if isinstance(tensor, torch.Tensor) else tensor for tensor in inputs]
            for index in self.changed:
                local[index] = inputs[index].clone()
            results = self.chosen(self.replayed(local, random_states))
            present = [place for place, gradient in enumerate(given) if gradient is not None]
            if not present:
                return self.by_input([None] * len(self.gradients))
            self._free([results[place] for place in sorted(freed)], local)
            found = torch.autograd.grad(
                [results[place] for place in present],
                [local[index] for index in self.gradients],
                [given[place] for place in present],
                create_graph=create_graph,
                allow_unused=True,
            )
        return self.by_input(found)

    def _free(self, results: Tensors, inputs: Tensors) -> None:
        """Go backward through the histories of results, which frees what their operations saved."""
        import torch

        if results:
            reached = [inputs[index] for index in self.gradients]
            torch.autograd.grad(results, reached, [torch.zeros_like(result) for result in results], allow_unused=True)


@functools.lru_cache(maxsize=1)
def _function() -> Any:
    """The autograd function behind all trained graphs; made late, since torch is imported late."""
    import torch

    class CompiledGraph(torch.autograd.Function):
        """Runs the plans. ``ctx`` keeps what backward reads, and the inputs in case it is differentiated too."""

        @staticmethod
        def forward(ctx: Any, graph: TrainedGraph, *inputs: Any) -> tuple[Any, ...]:
            """The results of the graph."""
            ctx.random_states = graph.random_states()
            made = graph.forward(*inputs)
            ctx.set_materialize_grads(False)
            ctx.graph = graph
            ctx.inputs = inputs
            ctx.freed = set()
            ctx.versions = [getattr(value, "_version", 0) for value in inputs]  # numbers have none
            ctx.numbers = [read(inputs) for read in graph.numbers]
            ctx.save_for_backward(*[(inputs if kind == "input" else made)[k] for kind, k in graph.saved])
            results = made[: graph.results]
            ctx.layouts = graph.layouts_of(results)
            ctx.results = [(weakref.ref(result), result._version) for result in results]
            ctx.mark_non_differentiable(*graph.chosen(results, False))
            return results

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            """The gradients of the graph's inputs."""
            if not torch._C._is_any_autocast_enabled():
                return _gradients(ctx, gradients)
            with torch._C._DisableAutocast():  # the plan has its casts among its operations
                return _gradients(ctx, gradients)

    return CompiledGraph


def _reader(kind: str, index: int, dimension: int = 0) -> Callable[[Tensors], Any]:
    """A function of the graph's inputs that reads input ``index``, or its size or stride along a dimension."""
    if kind == "size":
        return lambda inputs: inputs[index].size(dimension)
    if kind == "stride":
        return lambda inputs: inputs[index].stride(dimension)
    return lambda inputs: inputs[index]


def _gradients(ctx: Any, gradients: Gradients) -> tuple[Any, ...]:
    """The gradients of the inputs of a graph, of those of its differentiable results."""
    import torch

    graph: TrainedGraph = ctx.graph
    given = graph.chosen(gradients)
    if ctx.freed:
        return _gradients_again(ctx, given)
    changes = _changes(ctx)
    if changes is not None and not _go_back(ctx, given, changes):
        _note_freed(ctx, given)
        return _recomputed(ctx, given)
    read = list(ctx.saved_tensors)
    _note_freed(ctx, given)
    missing = any(gradient is None for gradient in given)
    if torch.is_grad_enabled() or (missing and not graph.linear) or all(gradient is None for gradient in given):
        return _recomputed(ctx, given)
    read.extend(graph.fitted(gradient, place, ctx.layouts[place]) for place, gradient in enumerate(given))
    read.extend(ctx.numbers)
    ctx.maybe_clear_saved_tensors()  # unless the history is kept, the plan alone holds what it reads, and lets go of it
    made = graph.backward.consume(read)
    found = graph.flowing(made, given) if missing else made
    return _recomputed(ctx, given) if found is None else graph.by_input(found)


def _note_freed(ctx: Any, given: Gradients) -> None:
    """Note the results whose histories this backward frees: those with a gradient, unless histories are kept."""
    import torch

    if not vars(torch._C)["_autograd"]._get_current_graph_task_keep_graph():
        ctx.freed.update(place for place, gradient in enumerate(given) if gradient is not None)


def _gradients_again(ctx: Any, given: Gradients) -> tuple[Any, ...]:
    """The gradients of the inputs where an earlier backward freed what the plan reads.

    Autograd frees what each operation saved: it goes again through those that saved nothing, and through those that it
    has not reached. Where an input changed since, only operations that saved nothing have the same gradient.
    """
    freed = set(range(len(given))) if _changed_inputs(ctx) else set(ctx.freed)
    _note_freed(ctx, given)
    result: tuple[Any, ...] = ctx.graph.recomputed(ctx.inputs, given, ctx.random_states, freed)
    return result


def _recomputed(ctx: Any, given: Gradients) -> tuple[Any, ...]:
    """The gradients of the inputs by running the graph again, which must find what the first run found."""
    _check_unchanged(ctx)
    result: tuple[Any, ...] = ctx.graph.recomputed(ctx.inputs, given, ctx.random_states)
    return result


def _all_finite(tensors: Tensors) -> bool:
    """Whether all elements of all tensors are finite; waits for the device once."""
    import torch

    filled = [tensor for tensor in tensors if tensor.numel()]
    if not filled:
        return True
    largest = torch._foreach_norm(filled, float("inf"))  # pyright: ignore[reportPrivateImportUsage]
    return bool(torch.stack([one.to(largest[0].device, torch.float64) for one in largest]).isfinite().all())


def with_freed_history(run: Run, graph: dict[str, Any]) -> Run:
    """Has the outputs in ``graph["freed"]`` require gradients as results do that backward has gone through before."""
    freed: list[int] = graph["freed"]
    import torch

    leaf = next(place for place, (_, metadata) in enumerate(graph["inputs"]) if len(metadata) > 1 and metadata[5])
    apply = torch.enable_grad()(_freed().apply)  # the graph may turn gradients on itself, where the caller has them off

    def with_history(*inputs: Any) -> tuple[Any, ...]:
        outputs = list(run(*inputs))
        others = [*inputs, *(output for place, output in enumerate(outputs) if place not in freed)]
        owners = [_owner(outputs[place], others) for place in freed]
        distinct = list({id(owner): owner for owner in owners}.values())
        marked = dict(zip(map(id, distinct), apply(inputs[leaf], distinct), strict=True))
        for place, owner in zip(freed, owners, strict=True):
            outputs[place] = _viewed(outputs[place], owner, marked[id(owner)])
        return tuple(outputs)

    return with_history


def _owner(output: Tensor, others: Sequence[Any]) -> Tensor:
    """What gets the history: the tensor that a view is of, unless others show it; else the output.

    Autograd refuses changes to views that a function of several results returns.
    """
    base = output._base
    if base is None or base.requires_grad or base.dtype != output.dtype or output.is_conj() or output.is_neg():
        return output
    shown = any(one is base or getattr(one, "_base", None) is base for one in others)
    return output if shown else base


def _viewed(output: Tensor, owner: Tensor, marked: Tensor) -> Tensor:
    """The output with the history of the tensor that it is or is a view of."""
    import torch

    if owner is output:
        return marked
    with torch.enable_grad():
        return marked.as_strided(output.shape, output.stride(), output.storage_offset())


@functools.lru_cache(maxsize=1)
def _freed() -> Any:
    """The autograd function of results whose history is gone."""
    import torch

    class FreedHistory(torch.autograd.Function):
        """Gives the tensors in a list as they are; only where they come from is unknown."""

        @staticmethod
        def forward(ctx: Any, leaf: Tensor, outputs: list[Tensor]) -> tuple[Tensor, ...]:
            """The outputs; ``leaf`` requires gradients."""
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            """What autograd says of a history that it has freed."""
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
                "if you need to access saved tensors after calling backward."
            )

    return FreedHistory


def _changed_inputs(context: Any) -> tuple[int, ...]:
    """The places of the inputs that no longer hold what they held, though the graph itself does not write them."""
    pairs = enumerate(zip(context.inputs, context.versions, strict=True))
    changed = [index for index, (tensor, version) in pairs if getattr(tensor, "_version", 0) != version]
    return tuple(index for index in changed if index not in context.graph.changed)


def _changes(context: Any) -> Changes | None:
    """What was written since the graph ran; None where that is nothing. What nothing holds any more is as it was."""
    inputs = _changed_inputs(context)
    living = [(place, reference(), version) for place, (reference, version) in enumerate(context.results)]
    results = tuple(place for place, result, version in living if result is not None and result._version != version)
    return (inputs, results) if inputs or results else None


def _go_back(context: Any, given: Gradients, changes: Changes) -> bool:
    """Whether the plan may go back in spite of changes; raises what autograd raises where one of its operations kept
    what changed, though the plan may not have.

    Autograd itself decides, once for each set of changes: the graph is run again with tensors of like versions.
    """
    graph: TrainedGraph = context.graph
    key = changes, tuple(place for place, gradient in enumerate(given) if gradient is not None)
    if key[1] and key not in graph.harmless:
        _raise_as_autograd(context, given, changes)
        graph.harmless.add(key)
    inputs, results = changes
    kept = {place for kind, place in graph.saved if kind != "input"}
    return bool(inputs) or not kept.intersection(results)


def _raise_as_autograd(context: Any, given: Gradients, changes: Changes) -> None:
    """Raise autograd's error where it has one about the changes; what else goes wrong with changed values is none."""
    error = _error_of_autograd(context, given, changes)
    if error is None or "modified by an inplace operation" not in str(error):
        return
    for index in changes[0]:
        _raise_about_input(context, index, str(error))
    raise error


def _error_of_autograd(context: Any, given: Gradients, changes: Changes) -> RuntimeError | None:
    """What autograd raises; it is given rather than raised, as another error may take its place, without a context."""
    try:
        _go_back_by_autograd(context, given, changes)
    except RuntimeError as error:
        return error
    except Exception:
        return None
    return None


def _go_back_by_autograd(context: Any, given: Gradients, changes: Changes) -> None:
    """Run the graph again, give its tensors the versions that those of the first run have now, and go back."""
    import torch

    graph: TrainedGraph = context.graph
    with torch.enable_grad():
        leaves = [_leaf(one, version) for one, version in zip(context.inputs, context.versions, strict=True)]
        local = [one.clone() if index in graph.changed else one for index, one in enumerate(leaves)]
        results = graph.replayed(local, context.random_states)
    for index in changes[0]:
        _set_version(local[index], context.inputs[index]._version)
    for place in changes[1]:
        reference, version = context.results[place]
        _set_version(results[place], results[place]._version + reference()._version - version)
    differentiable = graph.chosen(results)
    pairs = [(differentiable[place], gradient) for place, gradient in enumerate(given) if gradient is not None]
    wanted = [leaves[index] for index in graph.gradients]
    torch.autograd.grad([one for one, _ in pairs], wanted, [one for _, one in pairs], allow_unused=True)


def _leaf(value: Any, version: int) -> Any:
    """A leaf with the memory of an input, and a version of its own."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    leaf = value.data.requires_grad_(value.requires_grad)
    _set_version(leaf, version)
    return leaf


def _set_version(tensor: Tensor, version: int) -> None:
    import torch

    vars(torch._C)["_autograd"]._unsafe_set_version_counter((tensor,), (version,))


def _raise_about_input(context: Any, index: int, message: str) -> None:
    """Have autograd say where an input with a history came from, if it is this one that the message is about."""
    import torch

    tensor, before = context.inputs[index], context.versions[index]
    now = tensor._version
    about = f"{list(tensor.shape)}] is at version {now}; expected version {before} instead"
    if tensor.grad_fn is None or about not in message:
        return
    with contextlib.ExitStack() as stack, torch.enable_grad():
        stack.callback(_set_version, tensor, now)
        _set_version(tensor, before)
        reading = tensor.sin()
        _set_version(tensor, now)  # which may give the tensor, where it is a view, another place in the history
        if reading.grad_fn is not None:
            reading.grad_fn(torch.ones_like(reading))


def _check_unchanged(context: Any) -> None:
    """Inputs that are read again must still hold what they held."""
    for index in _changed_inputs(context)[:1]:
        tensor = context.inputs[index]
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"an input of a compiled graph, of shape {list(tensor.shape)}, is at version {tensor._version}; "
            f"expected version {context.versions[index]} instead"
        )
