package symbolic

import "fmt"

func (b *builder) dump() {
	for k, i := range b.output {
		name := ""
		if s := b.slots[i]; s != nil {
			name = s.name
		}
		target := -1
		for j, o := range b.output {
			if o == i.Jump {
				target = j
			}
		}
		println(fmt.Sprintf("%d %s %d %s ->%d", k, i.Opcode, i.Arg, name, target))
	}
}
