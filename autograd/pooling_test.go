package autograd

import (
	"strings"
	"testing"

	"fusee/graph"
)

// TestMaximaOfRectified checks that gradients of maxima are masked before they are spread, so that what was rectified need not be kept.
func TestMaximaOfRectified(t *testing.T) {
	b := newBuilder(t, "maxima")
	pair := func(number int64) graph.Value { return graph.List{Items: []graph.Value{number, number}} }
	image, weight, bias := b.leaf("image", 2, 3, 8, 8), b.leaf("weight", 3), b.leaf("bias", 3)
	normal := b.call("torch.nn.functional.batch_norm", image, nil, nil, weight, bias, true)
	rectified := b.call("torch.relu", normal)
	maxima := b.call("torch.nn.functional.max_pool2d", rectified, pair(3), pair(2), pair(1))
	r, err := b.differentiate(maxima)
	if err != nil {
		t.Fatal(err)
	}
	for i, input := range r.Backward.Inputs {
		if strings.HasPrefix(input.Name, "relu") {
			t.Errorf("%s is kept: %s", input.Name, r.Why[i])
		}
	}
	var order []string
	for _, n := range r.Backward.Nodes {
		order = append(order, operatorName(n))
	}
	if want := "threshold_backward max_pool2d_with_indices_backward native_batch_norm_backward"; strings.Join(order, " ") != want {
		t.Errorf("backward runs %v", order)
	}
}
