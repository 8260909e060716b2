"""The smallest program that uses fusee: one compilation, then guarded calls, then a backend of one's own."""

import torch

import fusee


@fusee.compile
def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Adds, clips below zero, doubles: three operations that fusee runs as one kernel."""
    z = x + y
    return torch.relu(z) * 2


def custom_backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> object:
    """A backend is any callable that takes the captured graph and real example tensors and returns a callable."""
    gm.graph.print_tabular()
    print(gm.code)
    return gm.forward


def main() -> None:
    """Runs the example and shows what was compiled."""
    x = torch.tensor([1.0, -2.0, 3.0, -4.0])
    y = torch.tensor([0.5, 0.5, 0.5, 0.5])
    f(x, y)
    print("result:", f(x, y))  # the second call only checks guards and runs the kernel
    print("so far:", fusee.stats())
    print(fusee.compile(f.__wrapped__, backend=custom_backend)(x, y))


if __name__ == "__main__":
    main()
