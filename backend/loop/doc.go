// Package loop defines the loop IR, the one intermediate representation that every code emitter of the backend prints
// from: typed scalar operations in static single assignment form inside loop nests over strided buffers.
//
// # Shape of a kernel
//
// A Kernel iterates over the points of Outer, in any order and in parallel. For each point its stages run one after
// another. A stage without Inner extents runs its body once per outer point; a stage with Inner extents runs its body for
// every inner point. So a pointwise kernel is one stage without Inner, and a row softmax is: rows in Outer, a stage over
// the columns that reduces to the maximum, a stage over the columns that reduces to the sum of exponentials, and a stage
// over the columns that stores.
//
// # Values
//
// Values are numbered through the whole kernel in order of definition. A value of a stage without Inner is visible to all
// that follows. A value of a stage with Inner is visible within that stage only, except the result of Reduce, which
// is visible in the following stages, and not in its own.
//
// # Arithmetic
//
// Integers wrap in two's complement. F16 and BF16 are storage types: they are loaded, stored, selected, and cast, and all
// arithmetic happens in F32 or F64; a cast to F16 or BF16 rounds to nearest, ties to even, and marks the places where the
// graph asked for rounding. NaN, infinities and the sign of zero follow IEEE 754 as PyTorch's eager kernels do; the
// comment of every operation says what is special. An emitter may not reassociate or contract (fuse a multiplication and an addition)
// except within Reduce, whose order of combination is the emitter's choice, fixed for a given kernel.
//
// # Memory
//
// Indices are affine: an offset plus a stride for every outer and inner index, in elements of the buffer. A buffer that is written
// overlaps no other buffer of the kernel. A ReadWrite buffer is read and written at the same index only.
package loop
