package autograd

import "fusee/internal/slice"

// network is a directed graph with capacities, in which the greatest flow from node 0 to node 1 is found along shortest augmenting paths
// (Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970).
type network struct {
	edges []edge
	from  [][]int // edges that leave each node
	level []int
	next  []int
}

type edge struct {
	to       int
	capacity int64
}

// unlimited is a capacity that no cut pays for.
const unlimited = int64(1) << 60

// deterrent is a capacity that a cut pays for only where no other does.
const deterrent = int64(1) << 57

const (
	flowSource = 0
	flowSink   = 1
)

func newNetwork() *network { return &network{from: make([][]int, 2)} }

// node adds a node and gives its number.
func (n *network) node() int {
	n.from = append(n.from, nil)
	return len(n.from) - 1
}

// connect adds an edge; the edge after it is its reverse, which flow can be taken back along.
func (n *network) connect(from, to int, capacity int64) {
	n.from[from] = append(n.from[from], len(n.edges))
	n.edges = append(n.edges, edge{to, capacity})
	n.from[to] = append(n.from[to], len(n.edges))
	n.edges = append(n.edges, edge{from, 0})
}

// cut saturates the network and gives the nodes that the source still reaches: the side of it in a minimum cut.
func (n *network) cut() []bool {
	for n.layers() {
		n.next = make([]int, len(n.from))
		for n.push(flowSource, unlimited) > 0 {
		}
	}
	return slice.Map(n.level, func(level int) bool { return level >= 0 })
}

// layers numbers nodes by their distance from the source, −1 where it reaches them no more, and says whether it reaches the sink.
func (n *network) layers() bool {
	n.level = make([]int, len(n.from))
	for node := range n.level {
		n.level[node] = -1
	}
	n.level[flowSource] = 0
	queue := []int{flowSource}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, index := range n.from[node] {
			if e := n.edges[index]; e.capacity > 0 && n.level[e.to] < 0 {
				n.level[e.to] = n.level[node] + 1
				queue = append(queue, e.to)
			}
		}
	}
	return n.level[flowSink] >= 0
}

// push sends flow along one path of growing distance and gives how much.
func (n *network) push(node int, most int64) int64 {
	if node == flowSink {
		return most
	}
	for ; n.next[node] < len(n.from[node]); n.next[node]++ {
		index := n.from[node][n.next[node]]
		e := n.edges[index]
		if e.capacity == 0 || n.level[e.to] != n.level[node]+1 {
			continue
		}
		if sent := n.push(e.to, min(most, e.capacity)); sent > 0 {
			n.edges[index].capacity -= sent
			n.edges[index^1].capacity += sent
			return sent
		}
	}
	return 0
}
