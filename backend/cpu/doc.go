// Package cpu emits loop kernels as LLVM IR that is already vectorised, and compiles it to relocatable object files
// through libllvmlite without cgo. No optimiser pass runs: what LLVM's would do (choosing lanes, hoisting invariants, forming addresses) is
// done while printing, which makes compiling several times faster.
//
// A kernel becomes int64_t symbol(void *const *pointers, const int64_t *scalars, int64_t begin, int64_t end), which runs the outer points
// begin…end in row-major numbering. Results do not depend on how the points are divided over calls.
package cpu
