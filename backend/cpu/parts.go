package cpu

import (
	"fmt"
	"strings"

	"fusee/backend/loop"
)

// callParts prints the function of a kernel in parts: it calls the function of one part with that part's pointers, for each part that the points begin…end
// reach, and returns whether one of them failed.
func callParts(kernel *loop.Kernel, part string) string {
	bounds, total := []string{"i64 0"}, int64(0)
	for _, points := range kernel.Parts {
		total += points
		bounds = append(bounds, fmt.Sprintf("i64 %d", total))
	}
	table := fmt.Sprintf("[%d x i64]", len(bounds))
	return strings.NewReplacer("NAME", kernel.Name, "PART", part, "TABLE", table, "BOUNDS", strings.Join(bounds, ", "),
		"COUNT", fmt.Sprint(len(kernel.Parts)), "POINTERS", fmt.Sprint(len(kernel.Buffers))).Replace(partsText)
}

const partsText = `@bounds = private unnamed_addr constant TABLE [BOUNDS]
define i64 @NAME(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  br label %head
head:
  %part = phi i64 [ 0, %entry ], [ %following, %next ]
  %failed = phi i64 [ 0, %entry ], [ %after, %next ]
  %more = icmp slt i64 %part, COUNT
  br i1 %more, label %bounded, label %exit
bounded:
  %following = add i64 %part, 1
  %low = getelementptr i64, ptr @bounds, i64 %part
  %first = load i64, ptr %low
  %high = getelementptr i64, ptr @bounds, i64 %following
  %last = load i64, ptr %high
  %late = icmp sgt i64 %begin, %first
  %from = select i1 %late, i64 %begin, i64 %first
  %early = icmp slt i64 %end, %last
  %to = select i1 %early, i64 %end, i64 %last
  %some = icmp slt i64 %from, %to
  br i1 %some, label %called, label %next
called:
  %skipped = mul i64 %part, POINTERS
  %own = getelementptr ptr, ptr %pointers, i64 %skipped
  %start = sub i64 %from, %first
  %stop = sub i64 %to, %first
  %status = call i64 @PART(ptr %own, ptr %scalars, i64 %start, i64 %stop)
  %either = or i64 %failed, %status
  br label %next
next:
  %after = phi i64 [ %failed, %bounded ], [ %either, %called ]
  br label %head
exit:
  ret i64 %failed
}
`
