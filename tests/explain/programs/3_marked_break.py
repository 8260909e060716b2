"""Breaks that the program asks for, and shapes that depend on data."""

import torch

import fusee


@fusee.disable
def untouched(x):
    return x.flip(0)


def build():
    def model(x):
        y = torch.sin(x)
        fusee.graph_break()
        y = untouched(y) + 1
        kept = torch.nonzero(y > 1)
        return kept.sum() + y.sum()

    return model


def calls():
    return [((torch.arange(6.0),), {})]
