"""Ask eager PyTorch what calls return: the oracle for the inference in the Go package ``graph``.

``python tests/graph_oracle.py --output graph/testdata/oracle.json`` records, for many functions, argument types and
layouts, the element type, sizes, strides, offset, requires_grad, leaf and view flags of every result, and whether it
is an argument itself or shares an argument's memory. Calls that eager rejects are recorded as null. ``--full``
records many more combinations than the checked-in file holds.

A tensor argument is ``"@k"``, the k-th of ``tensors``: [dtype, sizes, strides, offset, requires_grad]. Other
arguments are JSON values, or one-key objects: "d" element type, "m" memory format, "c" complex, "f" float without
JSON form, "u" tuple, "s" slice, "e" Ellipsis. A result tensor is [dtype, sizes, strides, offset, requires_grad,
flags, relation], with relation "n" for new memory, "s3" for argument 3 itself, "v3" for a view of it (tensor
arguments counted in order).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import warnings

import torch

import graph_cases as cases
import graph_cases_library as library
from graph_programs import programs, random_programs
from graph_recorder import Recorder
from graph_samples import SAMPLES, values

RECORDS = (
    cases.record_unary,
    cases.record_binary,
    cases.record_mixed,
    cases.record_views,
    cases.record_casts,
    cases.record_factories,
    library.record_reductions,
    library.record_matrices,
    library.record_convolutions,
    library.record_networks,
    library.record_functional,
    library.record_shapes,
    library.record_shape_types,
    cases.record_random_views,
    cases.record_inference,
)


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="record many more combinations")
    parser.add_argument("--device", default="cpu", help="where the tensor arguments live")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    recorder = Recorder(options.full, options.device)
    for record in RECORDS:
        try:
            record(recorder, options.full)
        except torch.AcceleratorError as error:  # nothing runs after it: keep what there is
            print(f"{record.__name__} stopped: {error}".splitlines()[0])
            break
    found = recorder.result()
    found["samples"] = {
        k: [[str(v) for v in column] for column in zip(*rows, strict=True)] for k, rows in SAMPLES.items()
    }
    found["values"] = values()
    found["programs"] = programs()
    found["chains"] = random_programs(2000 if options.full else 60)
    options.output.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    print(f"{len(recorder.cases)} calls, {sum(c[4] is not None for c in recorder.cases)} of them valid")


if __name__ == "__main__":
    main()
