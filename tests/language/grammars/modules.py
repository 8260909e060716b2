"""Programs of modules: parameters, buffers, hooks, containers, training mode, optimizers, random numbers."""

from __future__ import annotations

from generate import Grammar, rows

HEADER = '''
import contextlib
import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn

from programs import calls

LOG = []
CONFIG = {"scale": 2, "log": False}


def whole(module):
    """Small integers as parameters, so that results are exact."""
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            values = torch.arange(parameter.numel()) % 5 - 2 + index % 2
            parameter.copy_(values.view(parameter.shape))
    return module


class Block(nn.Module):
    kind = "block"

    def __init__(self, size=3, scale=1):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("last", torch.zeros(size), persistent=False)
        self.scale, self.calls, self.names = scale, 0, []
        self.cache = None

    def forward(self, x, extra=None, *, by=1):
        self.calls += 1
        self.seen += 1
        if self.training:
            self.last = x.detach().sum(0)
        y = self.linear(x) * self.scale
        if extra is not None:
            y = y + extra
        if self.cache is None:
            self.cache = {"first": by}
        self.names.append(by)
        return F.relu(y) * by

    def helper(self, x):
        return self.linear.weight @ x.t()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(scale=2)])
        self.named = nn.ModuleDict({"up": nn.Linear(3, 3), "same": nn.Identity()})
        self.tail = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), Block())
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))])
        self.table = nn.ParameterDict({"bias": nn.Parameter(torch.ones(3))})
        self.drop = nn.Dropout(0.5)
        self.tied = self.blocks[0].linear
        self.mode = "sum"

    def forward(self, x, n=1):
        for index, block in enumerate(self.blocks):
            x = block(x, by=n) if index else block(x)
        for name, layer in self.named.items():
            x = x + layer(x) if name == "up" else layer(x)
        for weight in self.weights:
            x = x * weight + self.table["bias"]
        if self.mode == "sum":
            x = x + self.tied(x)
        return self.tail(x)


class Counted(nn.Module):
    """Attributes that need nn.Module's own lookup, a property, and state that changes at each call."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.step = inner, 0

    @property
    def ready(self):
        return self.step > 1

    def __getattr__(self, name):
        if name.startswith("virtual"):
            return len(name)
        return super().__getattr__(name)

    def forward(self, x):
        self.step += 1
        return self.inner(x) if self.ready else x + self.virtual_size


def net():
    return whole(Net())


def block(scale=1):
    return whole(Block(scale=scale))


def frozen():
    made = whole(Net()).requires_grad_(False)
    return made.eval()


def double(module, args, result):
    LOG.append(type(module).__name__)
    return result * 2


def before(module, args):
    LOG.append(len(args))
    return (args[0] + 1, *args[1:])
'''

TENSORS = rows("""
x
x
x
$M($T)
$M($T)
$M($T)
net($T)
net($T, $i)
net.blocks[$k]($T)
net.blocks[$k]($T, by=$i)
net.blocks[0]($T, $T)
net.tail($T)
net.tail[:2]($T)
net.tail[0].weight
net.named['up']($T)
net.named['same']($T)
net.weights[$k]
net.table['bias']
net.tied.bias
$M.linear.weight
net.blocks[$k].helper($T)
net.blocks[$k].seen
net.blocks[$k].last
net.get_parameter('tied.weight')
net.get_submodule('tail.0')($T)
next(net.parameters())
sum(p.sum() for p in net.parameters())
dict(net.named_parameters())['tied.bias']
net.state_dict()['tied.weight']
list(net.buffers())[$k]
($T + $T)
($T * $i)
($T - $i)
F.relu($T)
F.linear($T, net.tied.weight)
$T.detach()
$T.clone()
$T.sum()
$T.sum(0)
$T[:1]
opaque($T)
opaque($T)
net.drop($T)
F.dropout($T, 0.5, net.training)
torch.rand(3)
torch.randn_like($T)
torch.randint(5, (3,)).float()
torch.bernoulli(torch.full((3,), 0.5))
torch.randperm(3).float()
nn.Linear(3, 3, bias=False)($T).detach() * 0
functools.reduce(lambda p, q: q(p), net.blocks, $T)
nn.Sequential(*net.blocks)($T)
torch.func.functional_call(net.tied, {'weight': $T[:1], 'bias': $T.sum(0)}, ($T,))
copy.deepcopy(net.tied)($T)
counted($T)
counted.inner.linear($T)
net.forward($T)
Block.forward(net.blocks[0], $T)
torch.zeros($i, 3)
torch.utils.checkpoint.checkpoint(net.tied, $T, use_reentrant=False)
""")
NUMBERS = rows("""
$k
n
n
($i + $i)
$T.size(0)
len(net.blocks)
len(list(net.parameters()))
net.blocks[$k].calls
net.blocks[$k].scale
len(LOG)
CONFIG['scale']
sum(p.numel() for p in net.parameters())
counted.step
counted.virtual_x
len(net.blocks[$k].names)
int(net.blocks[$k].seen)
net.tied.in_features
opaque($i)
max($i, 1)
""")
OTHERS = rows("""
net.training
net.mode
net.blocks[$k].cache
net.blocks[$k].names
[name for name, _ in net.named_modules()]
[name for name, _ in net.named_parameters()]
[type(m).__name__ for m in net.children()]
list(net.state_dict())
net.tied is net.blocks[0].linear
net.extra
hasattr(net, 'extra')
isinstance(net.tail, nn.Sequential)
net.tied.weight.requires_grad
net.tied.weight.grad
counted.ready
repr(net.tied)
net.blocks[$k].kind
None
CONFIG
'up' in net.named
list(net.named)
$T.requires_grad
[p.grad for p in net.tied.parameters()]
net._get_name()
torch.is_grad_enabled()
torch.initial_seed()
net.tied.extra_repr()
""")
SIMPLE = [
    *rows("""
x = $T
x = $T
x = $T
y = $T
y = $T
z = $x
x = $M($T)
x = net($T)
y = net($T, $i)
x += $T
n = $i
n += 1
LOG.append($x)
LOG.append($T)
print($i)
observe($x, LOG)
observe(net.blocks[0].calls, net.blocks[0].seen)
opaque(x)
net.mode = 'none'
net.extra = $x
net.extra = $T
del net.extra
net.blocks[$k].scale = $i
net.blocks[$k].scale += 1
net.blocks[$k].calls = $i
net.blocks[$k].cache = None
net.blocks[$k].seen.add_($i)
net.blocks[$k].seen = torch.ones(())
net.blocks[$k].names.append($i)
net.eval()
net.train()
net.train($i > 1)
net.blocks[$k].eval()
net.tied.requires_grad_(False)
net.requires_grad_(True)
net.zero_grad()
net.zero_grad(set_to_none=False)
net($T).sum().backward()
$T.sum().backward()
(net.tied($T) * 2).sum().backward()
net.tied = net.blocks[1].linear
net.blocks.append(net.tied)
net.blocks[$k] = nn.Identity()
net.named['more'] = nn.ReLU()
del net.named['up']
net.weights[$k] = nn.Parameter($T.sum(0).detach())
net.tied.weight = nn.Parameter(torch.ones(3, 3))
net.register_buffer('buffer', $T)
CONFIG['scale'] = $i
CONFIG['log'] = not CONFIG['log']
torch.manual_seed($i)
return $x
return $T
raise ValueError($i)
assert $T.sum() >= $i, $i
counted.step = $i
y = counted($T)
handle = net.tied.register_forward_hook(double)
handle = net.tied.register_forward_pre_hook(before)
handle.remove()
optimizer.step()
optimizer.zero_grad()
net.tied.weight.data.mul_($i)
net.to(torch.float32)
z = [m($T) for m in net.blocks]
z = {name: layer($T) for name, layer in net.named.items()}
"""),
    "with torch.no_grad(): net.tied.weight.add_($i)",
    "with torch.no_grad():\n    for p in net.tied.parameters(): p.mul_($i)",
    "with torch.no_grad(): net.tied.weight.copy_($T[0])",
    "optimizer = torch.optim.SGD(net.tied.parameters(), lr=0.5)\n(net.tied(x) ** 2).sum().backward()\noptimizer.step()",
    "handle = net.tied.register_forward_hook(double)\nx = net.tied($T)\nhandle.remove()",
]
BLOCKS = [
    "if $c:$Belse:$B",
    "if net.training:$Belse:$B",
    "for i in range($i % 4):$L",
    "for m in net.blocks:$L",
    "for name, p in net.tied.named_parameters():$L",
    "for m in net.modules():$L",
    "try:$Bexcept (RuntimeError, TypeError, AttributeError) as error:$E",
    "try:$Bfinally:$B",
    "with torch.no_grad():$B",
    "with torch.enable_grad():$B",
    "with torch.inference_mode():$B",
    "with torch.autocast('cpu', enabled=False):$B",
    "def inner(p, q=$i):$Fx = inner($T)",
    "class Local(nn.Module):\n    def __init__(self, q=$i):\n        super().__init__()\n        self.q = q\n    def forward(self, p):\n        q = self.q$Fz = Local()($T)",
]
EXTRA = {
    "B": [],
    "L": ["if $c: break", "if $c: continue", "x = x + 1", "n += 1"],
    "F": ["return p * q", "return net.tied(p)", "return p, q"],
    "E": ["LOG.append(type(error).__name__)", "raise", "x = $T"],
}

GRAMMAR = Grammar(
    header=HEADER,
    parameters="net, x, n",
    pools=[
        ["net()", "net()", "net().eval()", "frozen()"],
        [
            "torch.arange(6.0).view(2, 3)",
            "torch.arange(6.0).view(2, 3)",
            "torch.arange(-3.0, 9.0).view(4, 3)",
            "torch.ones(1, 3)",
            "torch.ones(3)",
            "torch.ones(2, 3).requires_grad_()",
            "torch.arange(9.0).view(3, 3)",
        ],
        ["1", "2", "3", "0", "5", "-1"],
    ],
    start="y, z, counted = x, None, Counted(net.blocks[0])\ntorch.manual_seed(n)",
    result="x, y, z, n, list(net.parameters()), list(net.buffers()), [p.grad for p in net.parameters()], net.blocks[0].calls",
    expressions={
        "T": TENSORS,
        "M": [
            "net",
            "net.blocks[0]",
            "net.blocks[1]",
            "net.tied",
            "net.tail",
            "net.tail[$k]",
            "counted",
            "opaque(net.tied)",
        ],
        "i": NUMBERS,
        "r": OTHERS,
        "c": ["$i > $i", "$T.sum() > $i", "net.training", "$T.requires_grad", "net.blocks[$k].cache", "CONFIG['log']"],
        "N": ["x", "y", "z", "n"],
    },
    short={"T": "x", "M": "net.tied", "i": "n", "r": "None", "c": "n > 1", "N": "y"},
    words={"k": ["0", "1"]},
    anything=["T", "T", "T", "i", "r", "c", "N"],
    simple=SIMPLE,
    blocks=BLOCKS,
    extra=EXTRA,
    options=["", "", "dynamic=True", "dynamic=False"],
)
