"""A break two calls below, inside a loop, a try and a with statement."""

import contextlib

import torch


@contextlib.contextmanager
def doubled(values):
    values.append(2)
    yield values
    values.pop()


def clip(x, limit):
    if x.norm() > limit:
        return x * (limit / x.norm())
    return x


def layer(x, values):
    with doubled(values) as factors:
        try:
            return clip(x * factors[-1], 3.0) + 1
        finally:
            x = x - 1


def build():
    def model(x):
        for _ in range(2):
            x = layer(x, [])
        return torch.tanh(x)

    return model


def calls():
    return [((torch.ones(4),), {}), ((torch.full((4,), 0.1),), {})]
