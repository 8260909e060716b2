// Package backend turns graphs of tensor operations into launch plans: it lowers them to scalar formulas over index spaces, fuses neighbours
// into loop kernels, has the kernels emitted for the device, and lists the steps that allocate, launch, and free.
//
// The work is a list of passes in one fixed order; see passes. The order of steps is sound by construction: a mutation of memory is a barrier
// that no other operation moves across, or makes a new version of a tensor whose readers are all known; everything else is free of side effects.
package backend
