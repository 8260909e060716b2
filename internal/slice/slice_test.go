package slice

import (
	"errors"
	"slices"
	"strconv"
	"testing"
)

func TestMap(t *testing.T) {
	if got := Map([]int{1, 20}, strconv.Itoa); !slices.Equal(got, []string{"1", "20"}) {
		t.Errorf("Map gives %q", got)
	}
}

func TestTryMapStopsAtTheFirstError(t *testing.T) {
	if got, err := TryMap([]string{"1", "20"}, strconv.Atoi); err != nil || !slices.Equal(got, []int{1, 20}) {
		t.Errorf("TryMap gives %d, %v", got, err)
	}
	calls := 0
	got, err := TryMap([]string{"1", "x", "3"}, func(text string) (int, error) { calls++; return strconv.Atoi(text) })
	if got != nil || !errors.Is(err, strconv.ErrSyntax) || calls != 2 {
		t.Errorf("TryMap gives %d, %v after %d calls", got, err, calls)
	}
}

func TestMapAllNeedsEveryItem(t *testing.T) {
	half := func(n int) (int, bool) { return n / 2, n%2 == 0 }
	if got, ok := MapAll([]int{2, 8}, half); !ok || !slices.Equal(got, []int{1, 4}) {
		t.Errorf("MapAll gives %d, %t", got, ok)
	}
	if got, ok := MapAll([]int{2, 3}, half); ok || got != nil {
		t.Errorf("MapAll gives %d, %t", got, ok)
	}
	if _, ok := MapAll(nil, half); !ok {
		t.Error("nothing does not fit")
	}
}

func TestFilterAndFind(t *testing.T) {
	items := []int{5, 6, 7, 8}
	even := func(n int) bool { return n%2 == 0 }
	if got := Filter(items, even); !slices.Equal(got, []int{6, 8}) || !slices.Equal(items, []int{5, 6, 7, 8}) {
		t.Errorf("Filter gives %d of %d", got, items)
	}
	if got, ok := Find(items, even); !ok || got != 6 {
		t.Errorf("Find gives %d, %t", got, ok)
	}
	if got, ok := Find(items[:1], even); ok || got != 0 {
		t.Errorf("Find gives %d, %t", got, ok)
	}
}

func TestFlatMap(t *testing.T) {
	if got := FlatMap([]int{0, 2, 1}, func(n int) []int { return slices.Repeat([]int{n}, n) }); !slices.Equal(got, []int{2, 2, 1}) {
		t.Errorf("FlatMap gives %d", got)
	}
}
