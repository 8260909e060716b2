// Package autograd differentiates graphs ahead of time: from a graph whose operations autograd would record it makes a forward graph, which
// also gives what has to be kept, and a backward graph, which computes the gradients of the inputs from that and the gradients of the results.
//
// Passes run in one order: functional (in-place operations on intermediates become new values), layouts (images between convolutions), joint (the forward operations and, after
// them, those that carry the gradients back, from the derivatives in the operator table), partition (a minimum cut decides what is kept).
// What a pass cannot express is refused with a reason, and the graph runs under PyTorch's own autograd.
package autograd
