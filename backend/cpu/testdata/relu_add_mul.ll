define i64 @relu_add_mul(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  %v1 = getelementptr ptr, ptr %pointers, i64 0
  %v2 = load ptr, ptr %v1
  %v3 = getelementptr ptr, ptr %pointers, i64 1
  %v4 = load ptr, ptr %v3
  %v5 = getelementptr ptr, ptr %pointers, i64 2
  %v6 = load ptr, ptr %v5
  %v7 = sub i64 %end, %begin
  %v8 = and i64 %v7, -8
  %v9 = add i64 %begin, %v8
  br label %loop10.head
loop10.head:
  %v11 = phi i64 [ %begin, %entry ], [ %v11.next, %loop10.body ]
  %v11.more = icmp slt i64 %v11, %v9
  br i1 %v11.more, label %loop10.body, label %loop10.exit
loop10.body:
  %v12 = getelementptr float, ptr %v2, i64 %v11
  %v13 = getelementptr float, ptr %v4, i64 %v11
  %v14 = getelementptr float, ptr %v6, i64 %v11
  %v15 = load <8 x float>, ptr %v12, align 4
  %v16 = load <8 x float>, ptr %v13, align 4
  %v17 = fadd <8 x float> %v15, %v16
  %v18 = fcmp olt <8 x float> %v17, splat (float 0x0000000000000000)
  %v19 = select <8 x i1> %v18, <8 x float> splat (float 0x0000000000000000), <8 x float> %v17
  %v20 = fmul <8 x float> %v19, splat (float 0x4000000000000000)
  store <8 x float> %v20, ptr %v14, align 4
  %v11.next = add i64 %v11, 8
  br label %loop10.head
loop10.exit:
  br label %loop21.head
loop21.head:
  %v22 = phi i64 [ %v9, %loop10.exit ], [ %v22.next, %loop21.body ]
  %v22.more = icmp slt i64 %v22, %end
  br i1 %v22.more, label %loop21.body, label %loop21.exit
loop21.body:
  %v23 = getelementptr float, ptr %v2, i64 %v22
  %v24 = getelementptr float, ptr %v4, i64 %v22
  %v25 = getelementptr float, ptr %v6, i64 %v22
  %v26 = load float, ptr %v23, align 4
  %v27 = load float, ptr %v24, align 4
  %v28 = fadd float %v26, %v27
  %v29 = fcmp olt float %v28, 0x0000000000000000
  %v30 = select i1 %v29, float 0x0000000000000000, float %v28
  %v31 = fmul float %v30, 0x4000000000000000
  store float %v31, ptr %v25, align 4
  %v22.next = add i64 %v22, 1
  br label %loop21.head
loop21.exit:
  ret i64 0
}
attributes #0 = { nounwind "target-cpu"="x86-64-v3" "min-legal-vector-width"="256" "prefer-vector-width"="256" }
