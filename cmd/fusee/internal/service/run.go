package service

import (
	"context"
	"encoding/json"
	"math"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/graph"
)

// maxElements bounds the elements of all inputs of a graph that runs in a replay.
const maxElements = 1 << 26

// Compare runs the graph twice in WebAssembly, as fused kernels and with each operation a kernel of its own, on given inputs or, where
// those are nil, on random ones for the seed. The error is backend.ErrNotRunnable where only torch can run the graph.
func (c *CompiledGraph) Compare(ctx context.Context, inputs []json.RawMessage, seed uint64) (*backend.Comparison, error) {
	plain := withoutModes(c.Graph)
	if err := checkExtents(plain); err != nil {
		return nil, err
	}
	data, err := backend.RandomInputs(plain, seed)
	if err != nil {
		return nil, err
	}
	if inputs != nil {
		if err := setInputs(plain, data, inputs); err != nil {
			return nil, err
		}
	}
	return backend.CompareFused(ctx, plain, data)
}

// checkExtents refuses inputs that take more memory than a replay may.
func checkExtents(g *graph.Graph) error {
	left := int64(maxElements)
	for _, input := range g.Inputs {
		if input.Kind != graph.Tensor {
			continue
		}
		extent := input.Meta.Offset.Hint + 1
		for i, size := range input.Meta.Sizes {
			stride := input.Meta.Strides[i].Hint
			if size.Hint < 0 || stride < 0 || size.Hint > maxElements || stride > maxElements {
				extent = maxElements + 1
				break
			}
			extent = min(extent+size.Hint*stride, maxElements+1)
		}
		if left -= extent; left < 0 {
			return errors.WithHint(errors.Newf("the inputs of %s have more than %d elements", g.Name, maxElements), "record the function with smaller tensors")
		}
	}
	return nil
}

// setInputs stores the inputs that the user gave: nested lists of numbers for tensors, numbers for scalars.
func setInputs(g *graph.Graph, data []*backend.Data, inputs []json.RawMessage) error {
	if len(inputs) != len(data) {
		return errors.Newf("%s takes %d inputs, %d are given", g.Name, len(data), len(inputs))
	}
	for i, input := range g.Inputs {
		var value any
		if err := json.Unmarshal(inputs[i], &value); err != nil {
			return errors.Wrapf(err, "input %s", input.Name)
		}
		if err := setInput(input, data[i], value); err != nil {
			return errors.Wrapf(err, "input %s", input.Name)
		}
	}
	return nil
}

func setInput(input *graph.Input, data *backend.Data, value any) error {
	number, isNumber := value.(float64)
	switch {
	case input.Kind == graph.Tensor:
		numbers, err := flatten(value, data.Sizes)
		if err != nil {
			return err
		}
		return data.SetElements(numbers)
	case !isNumber:
		return errors.New("a number is wanted")
	case input.Kind == graph.Float:
		data.Number = int64(math.Float64bits(number))
	default:
		data.Number = int64(number)
	}
	return nil
}

// flatten lists the numbers of nested lists whose lengths are the sizes.
func flatten(value any, sizes []int64) ([]float64, error) {
	if len(sizes) == 0 {
		switch v := value.(type) {
		case float64:
			return []float64{v}, nil
		case bool:
			return map[bool][]float64{false: {0}, true: {1}}[v], nil
		}
		return nil, errors.Newf("%v stands where a number should", value)
	}
	items, ok := value.([]any)
	if !ok || int64(len(items)) != sizes[0] {
		return nil, errors.Newf("a list of %d items is wanted", sizes[0])
	}
	var numbers []float64
	for _, item := range items {
		inner, err := flatten(item, sizes[1:])
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, inner...)
	}
	return numbers, nil
}
