define i64 @kernel(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  %v1 = getelementptr ptr, ptr %pointers, i64 0
  %v2 = load ptr, ptr %v1
  %v3 = getelementptr ptr, ptr %pointers, i64 1
  %v4 = load ptr, ptr %v3
  %v5 = getelementptr ptr, ptr %pointers, i64 2
  %v6 = load ptr, ptr %v5
  %v7 = getelementptr float, ptr %v2, i64 40
  %v8 = getelementptr float, ptr %v4, i64 -43
  %v9 = udiv i64 %begin, 80
  %v10 = sub i64 80, 1
  %v11 = add i64 %end, %v10
  %v12 = udiv i64 %v11, 80
  br label %loop13.head
loop13.head:
  %v14 = phi i64 [ %v9, %entry ], [ %v14.next, %loop79.exit ]
  %v14.more = icmp slt i64 %v14, %v12
  br i1 %v14.more, label %loop13.body, label %loop13.exit
loop13.body:
  %v15 = mul i64 %v14, 41
  %v16 = getelementptr float, ptr %v7, i64 %v15
  %v17 = mul i64 %v14, 37
  %v18 = getelementptr float, ptr %v8, i64 %v17
  %v19 = mul i64 %v14, 80
  %v20 = getelementptr float, ptr %v6, i64 %v19
  %v21 = mul i64 %v14, 80
  %v22 = sub i64 %begin, %v21
  %v23 = call i64 @llvm.smax.i64(i64 %v22, i64 0)
  %v24 = sub i64 %end, %v21
  %v25 = call i64 @llvm.smin.i64(i64 %v24, i64 80)
  %v26 = call i64 @llvm.smin.i64(i64 %v25, i64 41)
  %v27 = call i64 @llvm.smax.i64(i64 %v23, i64 %v26)
  %v28 = sub i64 %v27, %v23
  %v29 = and i64 %v28, -8
  %v30 = add i64 %v23, %v29
  br label %loop31.head
loop31.head:
  %v32 = phi i64 [ %v23, %loop13.body ], [ %v32.next, %loop31.body ]
  %v32.more = icmp slt i64 %v32, %v30
  br i1 %v32.more, label %loop31.body, label %loop31.exit
loop31.body:
  %v33 = mul i64 %v32, -1
  %v34 = getelementptr float, ptr %v16, i64 %v33
  %v35 = getelementptr float, ptr %v18, i64 %v32
  %v36 = getelementptr float, ptr %v20, i64 %v32
  %v37 = getelementptr float, ptr %v34, i64 -7
  %v38 = load <8 x float>, ptr %v37, align 4
  %v39 = shufflevector <8 x float> %v38, <8 x float> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %v40 = fneg <8 x float> %v39
  store <8 x float> %v40, ptr %v36, align 4
  %v32.next = add i64 %v32, 8
  br label %loop31.head
loop31.exit:
  br label %loop41.head
loop41.head:
  %v42 = phi i64 [ %v30, %loop31.exit ], [ %v42.next, %loop41.body ]
  %v42.more = icmp slt i64 %v42, %v27
  br i1 %v42.more, label %loop41.body, label %loop41.exit
loop41.body:
  %v43 = mul i64 %v42, -1
  %v44 = getelementptr float, ptr %v16, i64 %v43
  %v45 = getelementptr float, ptr %v18, i64 %v42
  %v46 = getelementptr float, ptr %v20, i64 %v42
  %v47 = load float, ptr %v44, align 4
  %v48 = fneg float %v47
  store float %v48, ptr %v46, align 4
  %v42.next = add i64 %v42, 1
  br label %loop41.head
loop41.exit:
  %v49 = call i64 @llvm.smax.i64(i64 %v23, i64 41)
  %v50 = call i64 @llvm.smin.i64(i64 %v25, i64 43)
  %v51 = call i64 @llvm.smax.i64(i64 %v49, i64 %v50)
  %v52 = sub i64 %v51, %v49
  %v53 = and i64 %v52, -8
  %v54 = add i64 %v49, %v53
  br label %loop55.head
loop55.head:
  %v56 = phi i64 [ %v49, %loop41.exit ], [ %v56.next, %loop55.body ]
  %v56.more = icmp slt i64 %v56, %v54
  br i1 %v56.more, label %loop55.body, label %loop55.exit
loop55.body:
  %v57 = mul i64 %v56, -1
  %v58 = getelementptr float, ptr %v16, i64 %v57
  %v59 = getelementptr float, ptr %v18, i64 %v56
  %v60 = getelementptr float, ptr %v20, i64 %v56
  store <8 x float> splat (float 0x4004000000000000), ptr %v60, align 4
  %v56.next = add i64 %v56, 8
  br label %loop55.head
loop55.exit:
  br label %loop61.head
loop61.head:
  %v62 = phi i64 [ %v54, %loop55.exit ], [ %v62.next, %loop61.body ]
  %v62.more = icmp slt i64 %v62, %v51
  br i1 %v62.more, label %loop61.body, label %loop61.exit
loop61.body:
  %v63 = mul i64 %v62, -1
  %v64 = getelementptr float, ptr %v16, i64 %v63
  %v65 = getelementptr float, ptr %v18, i64 %v62
  %v66 = getelementptr float, ptr %v20, i64 %v62
  store float 0x4004000000000000, ptr %v66, align 4
  %v62.next = add i64 %v62, 1
  br label %loop61.head
loop61.exit:
  %v67 = call i64 @llvm.smax.i64(i64 %v23, i64 43)
  %v68 = call i64 @llvm.smax.i64(i64 %v67, i64 %v25)
  %v69 = sub i64 %v68, %v67
  %v70 = and i64 %v69, -8
  %v71 = add i64 %v67, %v70
  br label %loop72.head
loop72.head:
  %v73 = phi i64 [ %v67, %loop61.exit ], [ %v73.next, %loop72.body ]
  %v73.more = icmp slt i64 %v73, %v71
  br i1 %v73.more, label %loop72.body, label %loop72.exit
loop72.body:
  %v74 = mul i64 %v73, -1
  %v75 = getelementptr float, ptr %v16, i64 %v74
  %v76 = getelementptr float, ptr %v18, i64 %v73
  %v77 = getelementptr float, ptr %v20, i64 %v73
  %v78 = load <8 x float>, ptr %v76, align 4
  store <8 x float> %v78, ptr %v77, align 4
  %v73.next = add i64 %v73, 8
  br label %loop72.head
loop72.exit:
  br label %loop79.head
loop79.head:
  %v80 = phi i64 [ %v71, %loop72.exit ], [ %v80.next, %loop79.body ]
  %v80.more = icmp slt i64 %v80, %v68
  br i1 %v80.more, label %loop79.body, label %loop79.exit
loop79.body:
  %v81 = mul i64 %v80, -1
  %v82 = getelementptr float, ptr %v16, i64 %v81
  %v83 = getelementptr float, ptr %v18, i64 %v80
  %v84 = getelementptr float, ptr %v20, i64 %v80
  %v85 = load float, ptr %v83, align 4
  store float %v85, ptr %v84, align 4
  %v80.next = add i64 %v80, 1
  br label %loop79.head
loop79.exit:
  %v14.next = add i64 %v14, 1
  br label %loop13.head
loop13.exit:
  ret i64 0
}
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
attributes #0 = { nounwind "target-cpu"="x86-64-v3" "min-legal-vector-width"="256" "prefer-vector-width"="256" }
