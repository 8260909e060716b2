"""A number read from a tensor, and a call of a function written in C."""

import time

import torch


def build():
    def step(x):
        scale = x.abs().max().item()
        y = x / scale
        time.sleep(0)
        return torch.relu(y) * 2

    return step


def calls():
    return [((torch.linspace(-1, 1, 8),), {})]
