package backend

import (
	"math"

	"fusee/backend/loop"
	"fusee/graph"
)

// Products of one row by a matrix, and attention of one query, on a GPU: so little is computed for each element read that loops go as fast as memory, and what
// comes before and after needs no kernels of its own, where a library would take several for each product.
const (
	replicatedRows       = 8192 // results for each of which a row's normalisation is computed again; for more of them it costs more than a kernel
	replicatedRow        = 4096 // elements of such a row
	replicatedReductions = 2    // along such a row: a mean and a variance
	shortAttention       = 128  // keys that one query attends to without a kernel of its own kind
)

func (r *recipe) linear() bool {
	return r.rowProduct(r.tensor("input", 0), r.tensor("weight", 1), r.optional("bias", 2))
}

// matrixProduct is mm, or matmul where the second operand is a matrix.
func (r *recipe) matrixProduct() bool {
	left, right := r.tensor("self", 0), r.tensor("other", 1)
	if r.failed || len(right.meta.Sizes) != 2 {
		return false
	}
	return r.rowProduct(left, transposed(right), nil)
}

func (r *recipe) addProduct() bool {
	bias, left, right := r.tensor("self", 0), r.tensor("mat1", 1), r.tensor("mat2", 2)
	if r.failed || len(right.meta.Sizes) != 2 || r.number("beta", 3, 1) != 1 || r.number("alpha", 4, 1) != 1 {
		return false
	}
	return r.rowProduct(left, transposed(right), bias)
}

// transposed is a matrix seen from the side.
func transposed(t *tensor) *tensor {
	meta := t.meta
	meta.Sizes = []graph.Size{meta.Sizes[1], meta.Sizes[0]}
	meta.Strides = []graph.Size{meta.Strides[1], meta.Strides[0]}
	return t.under(meta)
}

// under describes the tensor's memory by other sizes and strides.
func (t *tensor) under(meta graph.Meta) *tensor {
	view := newTensor(t.name, meta)
	view.root = t.root
	return view
}

// rowProduct multiplies a tensor of one row of K elements by a matrix whose rows lie together in memory, [N, K], and adds a bias that broadcasts to the result.
func (r *recipe) rowProduct(input, matrix, bias *tensor) bool {
	if r.failed || r.device.Type != "cuda" || !r.readsRows(input, matrix) {
		return false
	}
	count, length := matrix.meta.Sizes[0], matrix.meta.Sizes[1]
	output, wide := r.result(0), r.wide(input.meta.DType)
	row := r.replicated(input.asRow(length), count)
	product := r.formula("mul", r.fresh(wide, []graph.Size{count, length}), apply("mul", arg(0), arg(1)), row, matrix)
	total := r.reduce(loop.Sum, product, []bool{false, true}, wide, r.fresh(wide, []graph.Size{count}))
	body, operands := arg(0), []*tensor{r.reshaped(total, output.meta.Sizes)}
	if bias != nil {
		body, operands = apply("add", body, arg(1)), append(operands, bias)
	}
	return r.commit(r.formulaIn(baseName(r.node.Target), wide, output, body, operands...))
}

// readsRows reports whether input is one row as long as the matrix's rows, which lie together and whose sizes are known.
func (r *recipe) readsRows(input, matrix *tensor) bool {
	if len(matrix.meta.Sizes) != 2 || !isStatic(matrix.meta.Strides[1], 1) || input.meta.DType != matrix.meta.DType {
		return false
	}
	count, length := matrix.meta.Sizes[0], matrix.meta.Sizes[1]
	if count.Expr != nil || length.Expr != nil || count.Hint < pointLimit || length.Hint < 2 || length.Hint > rowLimit {
		return false
	}
	return len(input.meta.Sizes) > 0 && sameSizes(significant(input.meta.Sizes), []graph.Size{length})
}

// asRow views a tensor with one dimension of the given length, and no other elements, as a vector.
func (t *tensor) asRow(length graph.Size) *tensor {
	meta := t.meta
	meta.Sizes = []graph.Size{length}
	meta.Strides = []graph.Size{graph.Static(0)}
	for dimension, size := range t.meta.Sizes {
		if !isStatic(size, 1) {
			meta.Strides[0] = t.meta.Strides[dimension]
		}
	}
	return t.under(meta)
}

// replicated returns a row, [K], or what computes it anew for each of count results, [N, K], where reductions along the row lead to it: a normalisation
// before a product then belongs to the product's kernel.
func (r *recipe) replicated(row *tensor, count graph.Size) *tensor {
	if count.Hint > replicatedRows || row.meta.Sizes[0].Hint > replicatedRow {
		return row
	}
	if row.root.producer == nil {
		return row
	}
	for _, within := range []*graph.Node{nil, row.root.producer.node} {
		replica := replicator{recipe: r, length: row.meta.Sizes[0], count: count, within: within, reducing: map[*tensor]bool{}, known: map[*tensor]*tensor{}}
		if replica.reduces(row.root) && replica.reductions <= replicatedReductions {
			return replica.of(row)
		}
	}
	return row
}

// replicator writes operations on one row again as operations on equal rows.
type replicator struct {
	recipe        *recipe
	length, count graph.Size
	within        *graph.Node         // whose operations alone it writes again; nil for those of any node
	reducing      map[*tensor]bool    // the answers of reduces
	reductions    int                 // how many it met
	known         map[*tensor]*tensor // what is written already, by root
}

// reduces reports whether reductions along the row lead to the tensor, by operations that the replicator can write.
func (c *replicator) reduces(t *tensor) bool {
	if found, ok := c.reducing[t]; ok {
		return found
	}
	c.reducing[t] = false
	op := t.producer
	if op == nil || !c.writable(op) {
		return false
	}
	result := op.kind == reduction
	for _, operand := range op.operands {
		result = operand.tensor != nil && c.reduces(operand.tensor.root) || result
	}
	if op.kind == reduction {
		c.reductions++
	}
	c.reducing[t] = result
	return result
}

// writable reports whether an operation is a formula or reduction over the row, whose operands still have the values that it read.
func (c *replicator) writable(op *operation) bool {
	if op.kind == library || op.barrier || op.outputs[0].into != nil || op.readsOverwritten() {
		return false
	}
	if op.segment != c.recipe.b.segment || !c.shaped(op.outputs[0]) || c.within != nil && op.node != c.within {
		return false
	}
	for _, operand := range op.operands {
		if operand.gather != nil || operand.tensor != nil && !c.shaped(operand.tensor) {
			return false
		}
	}
	return op.kind != reduction || len(significant(op.operands[0].tensor.meta.Sizes)) == 1
}

// shaped reports whether a tensor is the row or one number.
func (c *replicator) shaped(t *tensor) bool {
	sizes := significant(t.meta.Sizes)
	return len(sizes) == 0 || sameSizes(sizes, []graph.Size{c.length})
}

// of returns a tensor of the row's shape, or of one number, for all rows.
func (c *replicator) of(t *tensor) *tensor {
	single := len(significant(t.meta.Sizes)) == 0
	if !c.reduces(t.root) {
		row := t.asRow(c.length)
		if single {
			row.meta.Sizes = graph.Statics(1)
		}
		return row
	}
	if known, ok := c.known[t.root]; ok {
		return known
	}
	width := c.length
	if single {
		width = graph.Static(1)
	}
	result := c.recipe.fresh(t.root.meta.DType, []graph.Size{c.count, width})
	op := *t.root.producer
	op.group, op.outputs, op.operands = nil, []*tensor{result}, append([]operand(nil), op.operands...)
	for index := range op.operands {
		if op.operands[index].tensor != nil {
			op.operands[index].tensor = c.of(op.operands[index].tensor)
		}
	}
	if op.kind == reduction {
		op.reduced, op.operands[0].tensor = []bool{false, true}, c.spread(op.operands[0].tensor)
	}
	c.recipe.pending = append(c.recipe.pending, &op)
	c.known[t.root] = result
	return result
}

// spread views a row as so many equal rows.
func (c *replicator) spread(t *tensor) *tensor {
	if len(t.meta.Sizes) == 2 {
		return t
	}
	meta := t.meta
	meta.Sizes = []graph.Size{c.count, c.length}
	meta.Strides = []graph.Size{graph.Static(0), meta.Strides[0]}
	return t.under(meta)
}

// attention is that of one query for each head to a few keys, without mask: the scaled products of query and keys, their softmax, and the values' mean
// weighted by it.
func (r *recipe) attention() bool {
	query, key, value := r.tensor("query", 0), r.tensor("key", 1), r.tensor("value", 2)
	if r.failed || r.device.Type != "cuda" || !r.attendsSimply(query, key, value) {
		return false
	}
	wide, output := r.wide(query.meta.DType), r.result(0)
	batch, heads, keys, width := key.meta.Sizes[0], key.meta.Sizes[1], key.meta.Sizes[2], key.meta.Sizes[3]
	scale := apply("mul", apply("mul", arg(0), arg(1)), number(r.number("scale", 6, 1/math.Sqrt(float64(width.Hint)))))
	product := r.formula("mul", r.fresh(wide, key.meta.Sizes), scale, query, key)
	scores := r.reduce(loop.Sum, product, []bool{false, false, false, true}, wide, r.fresh(wide, []graph.Size{batch, heads, keys, graph.Static(1)}))
	if isStatic(keys, 1) {
		only := apply("mul", arg(0), apply("exp", apply("sub", arg(1), arg(1)))) // 1, or NaN where the score is not finite
		return r.commit(r.formulaIn("attention", wide, output, only, value, scores))
	}
	// Every element of the result weighs the scores again, since so few cost less than a kernel does.
	space := []graph.Size{batch, heads, value.meta.Sizes[3], keys}
	scores = scores.permuted(space, 0, 1, -1, 2)
	along := []bool{false, false, false, true}
	_, _, power, total := r.exponentials(scores, along, wide)
	weighted := r.formula("mul", r.fresh(wide, space), apply("mul", arg(0), arg(1)), value.permuted(space, 0, 1, 3, 2), power)
	sum := r.reduce(loop.Sum, weighted, along, wide, r.fresh(wide, kept(space, along)))
	flat := []*tensor{r.reshaped(sum, output.meta.Sizes), r.reshaped(total, output.meta.Sizes)}
	return r.commit(r.formulaIn("attention", wide, output, apply("div", arg(0), arg(1)), flat...))
}

// permuted views a tensor under the given sizes, of which the tensor's dimensions are those numbered; -1 stands for equal elements.
func (t *tensor) permuted(sizes []graph.Size, dimensions ...int) *tensor {
	meta := t.meta
	meta.Sizes, meta.Strides = sizes, make([]graph.Size, len(sizes))
	for index, dimension := range dimensions {
		meta.Strides[index] = graph.Static(0)
		if dimension >= 0 {
			meta.Strides[index] = t.meta.Strides[dimension]
		}
	}
	return t.under(meta)
}

// attendsSimply reports whether attention is of one query to few keys, all known sizes, with as many heads on both sides and nothing masked or dropped.
func (r *recipe) attendsSimply(query, key, value *tensor) bool {
	q, k, v := query.meta.Sizes, key.meta.Sizes, value.meta.Sizes
	if len(q) != 4 || len(k) != 4 || len(v) != 4 || !isStatic(q[2], 1) || query.meta.DType != key.meta.DType {
		return false
	}
	for _, size := range k {
		if size.Expr != nil || size.Hint < 1 {
			return false
		}
	}
	plain := r.argument("attn_mask", 3) == nil && r.number("dropout_p", 4, 0) == 0 && (!r.flag("is_causal", 5) || isStatic(k[2], 1)) && !r.flag("enable_gqa", 7)
	return plain && k[2].Hint <= shortAttention && k[3].Hint > 1 && sameSizes(q[:2], k[:2]) && sameSizes(k[:3], v[:3]) && isStatic(q[3], k[3].Hint)
}
