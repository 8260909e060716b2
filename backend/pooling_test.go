package backend

import (
	"context"
	"math"
	"testing"

	"fusee/graph"
)

// pooled holds the windows of a test along both sides.
type pooled struct {
	norm
	size, stride, padding int
}

// counts is the number of windows along each side.
func (p pooled) counts() (height, width int) {
	return (p.h+2*p.padding-p.size)/p.stride + 1, (p.w+2*p.padding-p.size)/p.stride + 1
}

// eachWindow calls f with the number of every window, its image of H x W elements, and where its first element would be.
func (p pooled) eachWindow(f func(number, image, top, left int)) {
	height, width := p.counts()
	for number := range p.n * p.c * height * width {
		f(number, number/(height*width), number/width%height*p.stride-p.padding, number%width*p.stride-p.padding)
	}
}

// reference takes the maxima as ATen does: the first greatest element, a NaN before all others.
func (p pooled) reference(x, gradient []float64) (values, places, ofInput []float64) {
	ofInput = make([]float64, len(x))
	p.eachWindow(func(number, image, top, left int) {
		best, place := math.Inf(-1), max(top, 0)*p.w+max(left, 0)
		for row := max(top, 0); row < min(top+p.size, p.h); row++ {
			for column := max(left, 0); column < min(left+p.size, p.w); column++ {
				if value := x[image*p.h*p.w+row*p.w+column]; value > best || math.IsNaN(value) {
					best, place = value, row*p.w+column
				}
			}
		}
		values, places = append(values, best), append(places, float64(place))
		ofInput[image*p.h*p.w+place] += gradient[number]
	})
	return values, places, ofInput
}

// TestTrainedMaxPool compares the loops of maxima over windows, and of their gradients, with a plain search.
func TestTrainedMaxPool(t *testing.T) {
	image := norm{2, 3, 8, 7}
	for _, p := range []pooled{{image, 3, 2, 1}, {image, 2, 2, 0}, {image, 3, 1, 1}, {image, 3, 3, 0}, {image, 2, 3, 1}} {
		for _, together := range []bool{false, true} {
			checkMaxPool(t, p, together)
		}
	}
}

func checkMaxPool(t *testing.T, p pooled, together bool) {
	t.Helper()
	g := graph.NewGraph("pool")
	height, width := p.counts()
	maxima := norm{p.n, p.c, height, width}
	image := onGPU(g, together, int64(p.n), int64(p.c), int64(p.h), int64(p.w))
	value := onGPU(g, together, int64(p.n), int64(p.c), int64(height), int64(width))
	place := value
	place.DType = graph.Int64
	x, gradient := g.AddTensor("x", image), g.AddTensor("gradient", value)
	pair := func(number int) graph.Value { return graph.List{Items: []graph.Value{int64(number), int64(number)}} }
	arguments := []graph.Value{pair(p.size), pair(p.stride), pair(p.padding), pair(1), false}
	forward := results(g, "aten.max_pool2d_with_indices.default", append([]graph.Value{x}, arguments...), value, place)
	backward := results(g, "aten.max_pool2d_with_indices_backward.default", append(append([]graph.Value{gradient, x}, arguments...), forward.Output(1)), image)
	g.Outputs = []graph.Value{forward.Output(0), forward.Output(1), backward.Output(0)}
	numbers, gradients := make([]float64, p.n*p.c*p.h*p.w), make([]float64, p.n*p.c*height*width)
	for at := range numbers {
		numbers[at] = float64(at*7919%13) - 6 // with many equal ones
	}
	numbers[5], numbers[40], numbers[41] = math.NaN(), math.Inf(-1), math.Inf(1)
	for at := range gradients {
		gradients[at] = float64(at*31%17) - 8
	}
	outputs, err := Run(context.Background(), g, []*Data{p.lay(numbers, together), maxima.lay(gradients, together)}, true)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	values, places, ofInput := p.reference(numbers, gradients)
	for k, want := range [][]float64{values, places, ofInput} {
		for at, bits := range outputs[k].Elements() {
			got := bits.Float()
			if k == 1 {
				got = float64(bits.Int())
			}
			if got != want[at] && !(math.IsNaN(got) && math.IsNaN(want[at])) {
				t.Fatalf("%+v, channels together %v: result %d has %v at %d, not %v", p, together, k, got, at, want[at])
			}
		}
	}
}
