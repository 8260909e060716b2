"""Programs of tensors: views, in-place operations, aliases, gradients, sizes, breaks; all values stay exact in float32."""

from __future__ import annotations

from generate import Grammar, rows

HEADER = """
import contextlib
import copy
import math

import torch
import torch.nn.functional as F

from programs import calls

LOG = []
WEIGHT = torch.tensor([[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]])
SCALE = 2
STATE = {"step": 0, "total": torch.zeros(())}


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor
        self.history = []

    def add(self, other):
        self.tensor = self.tensor + other
        self.history.append(self.tensor)
        return self.tensor

    def grow_(self, by):
        self.tensor.add_(by)
        return self


def scaled(v, *, by=2):
    return v * by


def pieces(v, n):
    for i in range(n):
        got = yield v + i
        if got is not None:
            LOG.append(got)


def apply_all(v, *functions, **named):
    for function in (*functions, *named.values()):
        v = function(v)
    return v


def positive(v):
    if v.sum() > 0:
        return v * 2
    return v - 1


def nested(v, n):
    if n <= 0:
        return opaque(v)
    return nested(v + n, n - 1) * 2


@torch.no_grad()
def frozen(v):
    return v * 3


def checked(v):
    if v.dim() > 2:
        raise ValueError("dimensions", v.dim())
    return v


def make(n):
    def step(v):
        nonlocal n
        n += 1
        return v + n

    return step
"""

TENSORS = rows("""
$u
$u
$u
$u
($T + $T)
($T - $T)
($T * $n)
($T + $i)
($i - $T)
(-$T)
$T.abs()
$T.relu()
torch.relu($T)
F.relu($T)
$T.clamp(-1, $n)
torch.clamp($T, min=$n)
torch.maximum($T, $T)
torch.minimum($T, $T)
torch.where($T > $i, $T, $T)
torch.where($T > 0, $T, $i)
$T.sign()
($T > $i).float()
($T == $T).to(torch.float32)
$T.sum()
$T.sum($m)
$T.sum($m, keepdim=True)
$T.amax($m)
$T.amin($m, keepdim=True)
$T.max()
$T.cumsum($m)
$T.t()
$T.T
$T.mT
$T.transpose(0, $m)
$T.permute(1, 0)
$T.flatten()
$T.reshape(-1)
$T.view(-1)
$T.view($T.shape)
$T.view($T.size(0), -1)
$T.reshape($T.shape[0], -1)
$T.unsqueeze($m)
$T.squeeze()
$T.squeeze($m)
$T.expand($n, -1, -1)
$T.expand_as($T)
$T.contiguous()
$T.clone()
$T.detach()
$T[0]
$T[$n]
$T[-1]
$T[$i]
$T[1:]
$T[:$n]
$T[:, $n]
$T[..., 0]
$T[None]
$T[:, None]
$T[::2]
$T[:, 1:]
$T[$T > 0]
$T[..., $n:]
$T.narrow($m, 0, 1)
$T.select($m, 0)
$T.chunk(2, $m)[0]
$T.split(1, $m)[-1]
$T.unbind($m)[0]
$T.diagonal()
$T.flip($m)
$T.roll(1, $m)
$T.repeat(2, 1)
torch.cat([$T, $T], $m)
torch.stack([$T, $T], $m)
torch.zeros_like($T)
(torch.ones_like($T) * $i)
torch.full_like($T, $n)
torch.zeros($n, 3)
torch.ones($T.size(0))
torch.arange(3.0)
torch.arange($i, dtype=torch.float32)
torch.tensor([1.0, $i, 3])
torch.tensor($l)
torch.full((2, 3), $i)
torch.eye(3)[:$n]
$T.new_zeros(2, 3)
$T.new_tensor([1, 2])
$T.float()
$T.double().float()
$T.long().float()
$T.int()
$T.type_as($T)
($T @ $T.t())
$T.matmul(WEIGHT.t())
F.linear($T, WEIGHT)
torch.mm($T, $T.t())
$T.triu()
$T.tril($n)
$T.masked_fill($T > $n, $i)
$T.index_select(0, torch.tensor([0, 0]))
$T.gather(0, torch.zeros_like($T, dtype=torch.long))
torch.nonzero($T)
$T.unique()
$T.sort($m)[0]
$T.argmax($m)
$T.topk(1)[0]
$T.mean()
$T.floor_divide(2)
($T // 2)
($T % 3)
($T ** 2)
$T.square()
$T.mul(2).add_($i)
$T.add($T, alpha=2)
$T.lerp($T, 0.5)
torch.addmm($T, $T, $T)
F.pad($T, (1, 0))
scaled($T, by=$i)
scaled($T)
positive($T)
nested($T, $n)
frozen($T)
checked($T)
next(pieces($T, $n))
[*pieces($T, 2)][-1]
sum(pieces($T, $n))
make($i)($T)
apply_all($T, torch.relu, torch.neg)
apply_all($T, lambda v: v + $i, last=scaled)
opaque($T)
opaque($T)
holder.tensor
holder.add($T)
holder.grow_($i).tensor
WEIGHT
WEIGHT[:, :$n]
STATE['total']
($T if $c else $T)
(w := $T)
(lambda v: v + $T)($T)
[v + $i for v in $T][0]
max([$T.sum(), $T.sum()])
d['k']
items[$n]
torch.add($T, 1, out=None)
$T.add_($i)
$T.mul_($n)
$T.zero_()
$T.copy_($T)
$T.requires_grad_(False)
$T.data
$T.real
torch.broadcast_to($T, (2, 2, 3))
torch.movedim($T, 0, -1)
torch.einsum('ij,kj->ik', $T, $T)
torch.atleast_2d($T)
torch.squeeze($T, -1)
torch.isnan($T)
torch.logical_not($T)
$T.bool()
$T.any()
~($T > 0)
(($T > 0) & ($T < $n))
$T.bool().sum()
$T.prod($m)
$T.norm(p=1)
$T.unfold(0, 1, 1)
$T.as_strided((2,), (1,))
$T.swapaxes(0, -1)
$T.ravel()
$T.unflatten(-1, (1, -1))
$T.index_add(0, torch.tensor([0]), $T[:1])
$T.scatter(0, torch.zeros(1, 3, dtype=torch.long), $n)
torch.outer($T.flatten(), $T.flatten())
torch.bmm($T[None], $T.t()[None])
torch.tensor_split($T, 2)[0]
torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')[0]
torch.empty(2, 3).fill_($i)
torch.vmap(lambda v: v * 2)($T)
torch.func.grad(lambda v: (v * v).sum())($T)
""")
NUMBERS = rows("""
$v
$v
$n
($i + $i)
($i * $n)
($i - $n)
$T.size(0)
$T.shape[-1]
$T.dim()
$T.numel()
len($T)
len($l)
int($T.sum())
$T.sum().item()
int($T.sum())
$T.stride(0)
$T.storage_offset()
STATE['step']
SCALE
opaque($i)
($i if $c else $i)
max($i, $T.size(0))
$T.shape.numel()
$T.ndim
$T.argmax().item()
$T.element_size()
$T.flatten()[0].item()
""")
LISTS = rows("""
[$i, $i]
list($T.shape)
$T.tolist()
items
[$T, $T]
list($T)
[v for v in $T]
[*pieces($T, $n)]
[v.sum() for v in $T]
list($T.unbind())
opaque(items)
list(range($n))
sorted($l, key=lambda v: v.sum())
[scaled(v) for v in $l]
list($T.split(1))
""")
CONDITIONS = rows("""
$i > $i
$i == $i
$T.sum() > $i
($T > 0).any()
$T.dim() == 2
$T.shape == $T.shape
$T.shape[0] > $i
$T is $T
$T.is_contiguous()
$T.requires_grad
isinstance($x, torch.Tensor)
torch.equal($T, $T)
not $T.sum()
bool($T.sum())
torch.is_grad_enabled()
$c and $c
$T.dtype == torch.float32
len($T)
torch.allclose($T, $T)
holder.history
$T.is_floating_point()
""")
OTHERS = rows("""
($T, $i)
$T.shape
$T.size()
$T.stride()
$T.dtype
$T.device
{'a': $T, 'b': $i}
($T, $T)
[$T, [$T]]
None
$T.grad
$T.is_leaf
repr($i)
f'{$i}'
str($T.shape)
torch.Size([$n, 2])
$T.max($m)
$T.sort($m)
$T.min($m).values
$T.split($n)
$T.unbind()
$T.topk(1)
holder
holder.history
$T.nonzero(as_tuple=True)
torch.is_tensor($x)
($T == $T)
slice($i, $n)
($c, $c)
$T.tolist()
type($T)
$T._base is None
$T.is_set_to($T)
a.data_ptr() == z.data_ptr()
$T.numpy()
(v * 2 for v in $T)
""")
SIMPLE = [
    *rows("""
$t = $T
$t = $T
$t = $T
$t = $T
$t = $T
a = $T
b = $T
z = $T
z = $T
$t += $T
$t -= $i
$t *= $n
a += $i
b *= $n
z += $T
$u.add_($T)
$u.mul_($n)
$u.zero_()
$u.copy_($T)
$u.clamp_(min=$n)
$u.relu_()
$u.fill_($i)
$u.sub_($T)
$u.t_()
$u.unsqueeze_(0)
$u.squeeze_()
$u.transpose_(0, 1)
$u.masked_fill_($T > 0, $i)
$u[0] = $T
$u[$n] = $i
$u[:, $n] = $i
$u[1:] = $T
$u[$T > 0] = $i
$u[0] += $T
$u[...] = $T
$u[0].add_($i)
$u.t().add_($i)
$u.view(-1).mul_($n)
$u[:, 0] *= $n
$u[:1].copy_($T)
$u.detach().add_($i)
$u.data.add_($i)
$u.index_add_(0, torch.tensor([0]), $T[:1])
torch.add($T, $T, out=z)
holder.add($T)
holder.tensor = $T
holder.tensor += $i
holder.extra = $T
del holder.extra
$t = holder.extra
STATE['step'] += 1
STATE['total'] = STATE['total'] + $T.sum()
STATE['total'] += $i
d['k'] = $T
d['k'] += $i
d[$i] = $T
d.update(m=$T)
$t = d.pop('k')
items.append($T)
items.append($x)
items[0] = $T
items[-1] += $i
items[0].add_($i)
$t = items.pop()
LOG.append($x)
LOG.append($T)
LOG.append($i)
$t = $x
n = $i
n += $i
n += 1
k = $i
n, k = $T.shape
x, y = $T
x, *y = $T
$t = $l
$t, z = $T, $T
print($i)
print($T.shape, $T)
observe($x, LOG)
observe(a, b, z)
observe(items, d)
opaque(a)
opaque($T)
assert $c, $i
raise ValueError($i)
return $x
return $T
$t = $T.requires_grad_()
$t = $T.detach().requires_grad_()
$T.sum().backward()
($T * $T).sum().backward()
a.grad = None
$t = a.grad
$t, = torch.autograd.grad(($T * a).sum(), a)
global SCALE; SCALE = $i
torch._assert($c, 'no')
del $u
$t = copy.copy($T)
$t = copy.deepcopy($T)
a.mark = $i
$t = torch.empty(0)
$t.resize_(2).zero_()
torch.set_grad_enabled(True)
a = a.clone()
z = a.view(-1)
z = a[0]
z = a.t()
z = b.expand(2, -1, -1)
b = a
"""),
    "for v in $T: LOG.append(v.sum())",
    "for v in a: v.add_($i)",
    "g = pieces($T, 2)\nz = next(g)\n$t = g.send($i)",
    "f = make($i)\nz = f($T) + f($T)",
    "def hook(g):\n    LOG.append(g)\n    return g * 2\n$t = a.clone()\nif $t.requires_grad: $t.register_hook(hook)",
]
BLOCKS = [
    "if $c:$Belse:$B",
    "if $c:$B",
    "for i in range($n):$L",
    "for v in $T:$L",
    "for i, v in enumerate($T.unbind()):$L",
    "for v in pieces($T, $n):$L",
    "for v, w in zip($T, $T):$L",
    "while n < $n:\n    n += 1$L",
    "k = 0\nwhile z.sum() < $i and k < 3:\n    k += 1$L",
    "try:$Bexcept (RuntimeError, IndexError):$B",
    "try:$Bexcept Exception as error:$E",
    "try:$Bfinally:$B",
    "with torch.no_grad():$B",
    "with torch.enable_grad():$B",
    "with torch.set_grad_enabled($c):$B",
    "with torch.inference_mode():$B",
    "with contextlib.nullcontext($T) as v:$B",
    "with contextlib.suppress(RuntimeError, ValueError):$B",
    "def inner(p, *, q=$i):$Fz = inner($T)",
    "def inner(p, q=$T):\n    nonlocal_ = a$F$t = inner($T)",
    "def gen(p, q=$i):$G$t = [*gen($T)]",
    "def gen(p, q=$i):$Gfor v in gen($T):$L",
    "@torch.no_grad()\ndef inner(p, q=$i):$Fz = inner($T)",
    "match $x:\n  case torch.Tensor(shape=(q, 3)):$C  case [p, *q]:$C  case int(p) if p > $n:$C  case _:$C",
]
EXTRA = {
    "B": [],
    "C": [],
    "L": ["if $c: break", "if $c: continue", "z = z + $i", "a = a + i", "v.mul_(2)", "z = z + v"],
    "F": ["return p * q", "return p", "return p, $T", "p.add_(q)", "return (lambda: p + a)()"],
    "G": ["yield p * q", "yield $T", "z = yield p", "yield from $T", "p.add_(1)\nyield p"],
    "E": ["LOG.append(type(error).__name__)", "raise", "raise RuntimeError($i) from error", "z = $T"],
}

GRAMMAR = Grammar(
    header=HEADER,
    parameters="a, b, n, items",
    pools=[
        [
            "torch.arange(6.0).view(2, 3)",
            "torch.arange(6.0).view(2, 3)",
            "torch.arange(-6.0, 6.0).view(4, 3)",
            "torch.ones(1, 3)",
            "torch.arange(6.0).view(3, 2).t()",
            "torch.arange(9.0).view(3, 3)[1:]",
            "torch.arange(6.0).view(2, 3).requires_grad_()",
            "torch.zeros(0, 3)",
            "torch.arange(3.0)",
            "torch.arange(24.0).view(4, 2, 3)",
        ],
        [
            "torch.tensor([1.0, -2.0, 3.0])",
            "torch.tensor([1.0, -2.0, 3.0])",
            "torch.ones(2, 3)",
            "torch.tensor(2.0)",
            "torch.tensor([[1.0], [-1.0]])",
            "torch.tensor([0.0, 1.0, 5.0]).requires_grad_()",
            "torch.arange(3)",
            "torch.tensor([True, False, True])",
            "torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)",
            "torch.ones(1, 1, 3)",
        ],
        ["0", "1", "2", "3", "4", "5", "-1", "7"],
        ["[torch.ones(3)]", "[torch.ones(2, 3), torch.zeros(3)]", "[torch.ones(3), 2]", "[]"],
    ],
    start="z, d, k, holder = a + 1, {'k': b}, 3, Holder(a)\nx = y = None",
    result="a, b, n, k, x, y, z, items, d, holder",
    expressions={
        "T": TENSORS,
        "i": NUMBERS,
        "l": LISTS,
        "c": CONDITIONS,
        "r": OTHERS,
        "N": ["x", "y", "z", "a", "n"],
    },
    short={"T": "$u", "i": "$v", "l": "items", "c": "n > 1", "r": "None", "N": "x"},
    words={
        "n": ["0", "1", "2", "3"],
        "m": ["0", "0", "1", "-1"],
        "v": ["n", "k"],
        "t": ["x", "y", "z", "x", "y"],
        "u": ["a", "a", "b", "z", "z"],
    },
    anything=["T", "T", "T", "i", "l", "c", "r", "r", "N"],
    simple=SIMPLE,
    blocks=BLOCKS,
    extra=EXTRA,
    options=["", "", "dynamic=True", "dynamic=False"],
)
