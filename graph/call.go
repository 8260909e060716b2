package graph

import "errors"

// ErrUnknown says that the tables have no exact answer for a call: the caller asks the host and uses Append. It is also the
// answer for calls that eager rejects, so that the host gives the true exception.
var ErrUnknown = errors.New("graph: no exact rule for this call")

// unknown is an ErrUnknown that says why, for people who extend the tables.
type unknown string

func (u unknown) Error() string { return "graph: no exact rule: " + string(u) }

// Is makes errors.Is(err, ErrUnknown) hold.
func (u unknown) Is(target error) bool { return target == ErrUnknown }

// Call appends a node for a call of a torch-level function ("torch.relu", "Tensor.add_", "operator.add") with the outputs
// that eager would give, or returns an error that is ErrUnknown.
func (g *Graph) Call(target string, args []Value, keywords []Keyword, state State) (*Node, error) {
	return nil, unknown(target)
}

func (n *Node) checkSchema() error { return nil }
