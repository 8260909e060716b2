// Package wire reads and writes tensor metadata and graphs in the form of messages (docs/contracts.md, sections 3 and 5).
package wire

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
)

// metaFields is the number of items of tensor metadata.
const metaFields = 7

// ErrUnnatural is the answer to a tensor that PyTorch gave a negative size, as expanding a scalar to (0, -1) does.
var ErrUnnatural = errors.New("a tensor's sizes, strides or offset are no natural numbers")

// ParseMeta reads tensor metadata; items after the seventh are ignored, as object descriptions have more. The error is about a malformed
// tuple or an element type that is not known.
func ParseMeta(object bytecode.Object) (graph.Meta, error) { return ParseShapedMeta(object, nil) }

// ParseShapedMeta is ParseMeta for sizes that may be expressions over the symbols of an environment.
func ParseShapedMeta(object bytecode.Object, shapes *graph.ShapeEnvironment) (graph.Meta, error) {
	fields, ok := object.(bytecode.Tuple)
	if !ok || len(fields) < metaFields {
		return graph.Meta{}, errors.New("a tensor's metadata is malformed")
	}
	name, _ := fields[0].(string)
	dtype, known := graph.ParseDType(name)
	if !known {
		return graph.Meta{}, errors.Newf("element type %q is not known", name)
	}
	deviceName, _ := fields[1].(string)
	device, err := ParseDevice(deviceName)
	if err != nil {
		return graph.Meta{}, err
	}
	sizes, sizesOK := parseSizes(fields[2], shapes)
	strides, stridesOK := parseSizes(fields[3], shapes)
	offset, offsetOK := natural(fields[4], shapes)
	if !sizesOK || !stridesOK || !offsetOK {
		return graph.Meta{}, ErrUnnatural
	}
	requiresGrad, _ := fields[5].(bool)
	flags, _ := fields[6].(int64)
	meta := graph.Meta{DType: dtype, Device: device, Sizes: sizes, Strides: strides, Offset: offset, RequiresGrad: requiresGrad, Flags: graph.MetaFlags(flags)}
	if len(sizes) != len(strides) && meta.Flags&graph.FlagNotPlain == 0 {
		return graph.Meta{}, errors.New("a tensor has more sizes than strides")
	}
	return meta, nil
}

func parseSizes(object bytecode.Object, shapes *graph.ShapeEnvironment) ([]graph.Size, bool) {
	return slice.MapAll(trace.Items(object), func(item bytecode.Object) (graph.Size, bool) { return natural(item, shapes) })
}

func natural(object bytecode.Object, shapes *graph.ShapeEnvironment) (graph.Size, bool) {
	size, ok := ParseSize(object, shapes)
	return size, ok && size.Hint >= 0
}

// ParseDevice reads "cpu" or "cuda:0".
func ParseDevice(name string) (graph.Device, error) {
	kind, index, numbered := strings.Cut(name, ":")
	device := graph.Device{Type: kind}
	if numbered {
		n, err := strconv.ParseUint(index, 10, 16)
		if err != nil {
			return graph.Device{}, errors.Newf("device %q is not known", name)
		}
		device.Index = int(n)
	}
	return device, nil
}

// WriteMeta writes tensor metadata; symbolic sizes stand as their values at capture.
func WriteMeta(meta *graph.Meta) bytecode.Tuple {
	return bytecode.Tuple{
		meta.DType.String(), meta.Device.String(), writeSizes(meta.Sizes), writeSizes(meta.Strides), meta.Offset.Hint, meta.RequiresGrad, int64(meta.Flags),
	}
}

// WriteShapedMeta is WriteMeta with expressions for symbolic sizes.
func WriteShapedMeta(meta *graph.Meta) bytecode.Tuple {
	fields := WriteMeta(meta)
	fields[2], fields[3] = bytecode.Tuple(slice.Map(meta.Sizes, WriteSize)), bytecode.Tuple(slice.Map(meta.Strides, WriteSize))
	fields[4] = WriteSize(meta.Offset)
	return fields
}

func writeSizes(sizes []graph.Size) bytecode.Tuple {
	wired := make(bytecode.Tuple, len(sizes))
	for i, size := range sizes {
		wired[i] = size.Hint
	}
	return wired
}
