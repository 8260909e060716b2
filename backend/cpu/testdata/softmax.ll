define i64 @kernel(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  %v1 = getelementptr ptr, ptr %pointers, i64 0
  %v2 = load ptr, ptr %v1
  %v3 = getelementptr ptr, ptr %pointers, i64 1
  %v4 = load ptr, ptr %v3
  br label %loop5.head
loop5.head:
  %v6 = phi i64 [ %begin, %entry ], [ %v6.next, %loop227.exit ]
  %v6.more = icmp slt i64 %v6, %end
  br i1 %v6.more, label %loop5.body, label %loop5.exit
loop5.body:
  %v7 = mul i64 %v6, 33
  %v8 = getelementptr float, ptr %v2, i64 %v7
  %v9 = mul i64 %v6, 33
  %v10 = getelementptr float, ptr %v4, i64 %v9
  %v11 = sub i64 33, 0
  %v12 = and i64 %v11, -32
  %v13 = add i64 0, %v12
  br label %loop14.head
loop14.head:
  %v15 = phi i64 [ 0, %loop5.body ], [ %v15.next, %loop14.body ]
  %v16 = phi <32 x float> [ splat (float 0xFFF0000000000000), %loop5.body ], [ %v22, %loop14.body ]
  %v15.more = icmp slt i64 %v15, %v13
  br i1 %v15.more, label %loop14.body, label %loop14.exit
loop14.body:
  %v17 = getelementptr float, ptr %v8, i64 %v15
  %v18 = load <32 x float>, ptr %v17, align 4
  %v19 = fcmp ogt <32 x float> %v18, %v16
  %v20 = select <32 x i1> %v19, <32 x float> %v18, <32 x float> %v16
  %v21 = fcmp uno <32 x float> %v18, %v18
  %v22 = select <32 x i1> %v21, <32 x float> %v18, <32 x float> %v20
  %v15.next = add i64 %v15, 32
  br label %loop14.head
loop14.exit:
  %v23 = sub i64 33, %v13
  %v24 = and i64 %v23, -8
  %v25 = add i64 %v13, %v24
  %v26 = shufflevector <32 x float> %v16, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v27 = shufflevector <32 x float> %v16, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v28 = fcmp ogt <16 x float> %v27, %v26
  %v29 = select <16 x i1> %v28, <16 x float> %v27, <16 x float> %v26
  %v30 = fcmp uno <16 x float> %v27, %v27
  %v31 = select <16 x i1> %v30, <16 x float> %v27, <16 x float> %v29
  %v32 = shufflevector <16 x float> %v31, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v33 = shufflevector <16 x float> %v31, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v34 = fcmp ogt <8 x float> %v33, %v32
  %v35 = select <8 x i1> %v34, <8 x float> %v33, <8 x float> %v32
  %v36 = fcmp uno <8 x float> %v33, %v33
  %v37 = select <8 x i1> %v36, <8 x float> %v33, <8 x float> %v35
  br label %loop38.head
loop38.head:
  %v39 = phi i64 [ %v13, %loop14.exit ], [ %v39.next, %loop38.body ]
  %v40 = phi <8 x float> [ %v37, %loop14.exit ], [ %v46, %loop38.body ]
  %v39.more = icmp slt i64 %v39, %v25
  br i1 %v39.more, label %loop38.body, label %loop38.exit
loop38.body:
  %v41 = getelementptr float, ptr %v8, i64 %v39
  %v42 = load <8 x float>, ptr %v41, align 4
  %v43 = fcmp ogt <8 x float> %v42, %v40
  %v44 = select <8 x i1> %v43, <8 x float> %v42, <8 x float> %v40
  %v45 = fcmp uno <8 x float> %v42, %v42
  %v46 = select <8 x i1> %v45, <8 x float> %v42, <8 x float> %v44
  %v39.next = add i64 %v39, 8
  br label %loop38.head
loop38.exit:
  %v47 = shufflevector <8 x float> %v40, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v48 = shufflevector <8 x float> %v40, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v49 = fcmp ogt <4 x float> %v48, %v47
  %v50 = select <4 x i1> %v49, <4 x float> %v48, <4 x float> %v47
  %v51 = fcmp uno <4 x float> %v48, %v48
  %v52 = select <4 x i1> %v51, <4 x float> %v48, <4 x float> %v50
  %v53 = shufflevector <4 x float> %v52, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v54 = shufflevector <4 x float> %v52, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v55 = fcmp ogt <2 x float> %v54, %v53
  %v56 = select <2 x i1> %v55, <2 x float> %v54, <2 x float> %v53
  %v57 = fcmp uno <2 x float> %v54, %v54
  %v58 = select <2 x i1> %v57, <2 x float> %v54, <2 x float> %v56
  %v59 = extractelement <2 x float> %v58, i32 0
  %v60 = extractelement <2 x float> %v58, i32 1
  %v61 = fcmp ogt float %v60, %v59
  %v62 = select i1 %v61, float %v60, float %v59
  %v63 = fcmp uno float %v60, %v60
  %v64 = select i1 %v63, float %v60, float %v62
  %v65 = fcmp ogt float %v64, 0xFFF0000000000000
  %v66 = select i1 %v65, float %v64, float 0xFFF0000000000000
  %v67 = fcmp uno float %v64, %v64
  %v68 = select i1 %v67, float %v64, float %v66
  br label %loop69.head
loop69.head:
  %v70 = phi i64 [ %v25, %loop38.exit ], [ %v70.next, %loop69.body ]
  %v71 = phi float [ %v68, %loop38.exit ], [ %v77, %loop69.body ]
  %v70.more = icmp slt i64 %v70, 33
  br i1 %v70.more, label %loop69.body, label %loop69.exit
loop69.body:
  %v72 = getelementptr float, ptr %v8, i64 %v70
  %v73 = load float, ptr %v72, align 4
  %v74 = fcmp ogt float %v73, %v71
  %v75 = select i1 %v74, float %v73, float %v71
  %v76 = fcmp uno float %v73, %v73
  %v77 = select i1 %v76, float %v73, float %v75
  %v70.next = add i64 %v70, 1
  br label %loop69.head
loop69.exit:
  %v78 = fmul float %v71, 0x3FF0000000000000
  %v79 = sub i64 33, 0
  %v80 = and i64 %v79, -16
  %v81 = add i64 0, %v80
  br label %loop82.head
loop82.head:
  %v83 = phi i64 [ 0, %loop69.exit ], [ %v83.next, %loop82.body ]
  %v84 = phi <16 x double> [ splat (double 0x0000000000000000), %loop69.exit ], [ %v124, %loop82.body ]
  %v83.more = icmp slt i64 %v83, %v81
  br i1 %v83.more, label %loop82.body, label %loop82.exit
loop82.body:
  %v85 = getelementptr float, ptr %v8, i64 %v83
  %v86 = load <16 x float>, ptr %v85, align 4
  %v87 = insertelement <16 x float> poison, float %v78, i32 0
  %v88 = shufflevector <16 x float> %v87, <16 x float> poison, <16 x i32> zeroinitializer
  %v89 = fsub <16 x float> %v86, %v88
  %v90 = fcmp olt <16 x float> splat (float 0x4056400000000000), %v89
  %v91 = select <16 x i1> %v90, <16 x float> splat (float 0x4056400000000000), <16 x float> %v89
  %v92 = fcmp olt <16 x float> %v91, splat (float 0xC05A000000000000)
  %v93 = select <16 x i1> %v92, <16 x float> splat (float 0x0000000000000000), <16 x float> %v91
  %v94 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v93, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %v95 = fsub <16 x float> %v94, splat (float 0x4168000000000000)
  %v96 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v95, <16 x float> splat (float 0xBFE62E4300000000), <16 x float> %v93)
  %v97 = fmul <16 x float> %v95, splat (float 0x3E205C6100000000)
  %v98 = fmul <16 x float> %v96, %v96
  %v99 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F2A1267E0000000), <16 x float> %v96, <16 x float> splat (float 0x3F56D44E40000000))
  %v100 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v99, <16 x float> %v96, <16 x float> splat (float 0x3F81110E00000000))
  %v101 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v100, <16 x float> %v96, <16 x float> splat (float 0x3FA5554E80000000))
  %v102 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v101, <16 x float> %v96, <16 x float> splat (float 0x3FC5555560000000))
  %v103 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v102, <16 x float> %v96, <16 x float> splat (float 0x3FE0000000000000))
  %v104 = fadd <16 x float> splat (float 0x3FF0000000000000), %v96
  %v105 = fsub <16 x float> %v104, splat (float 0x3FF0000000000000)
  %v106 = fsub <16 x float> %v96, %v105
  %v107 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v98, <16 x float> splat (float 0x3FE0000000000000), <16 x float> %v104)
  %v108 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v97, <16 x float> %v107, <16 x float> %v106)
  %v109 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v98, <16 x float> %v103, <16 x float> %v108)
  %v110 = fadd <16 x float> %v104, %v109
  %v111 = bitcast <16 x float> %v94 to <16 x i32>
  %v112 = shl <16 x i32> %v111, splat (i32 23)
  %v113 = ashr <16 x i32> %v112, splat (i32 1)
  %v114 = and <16 x i32> %v113, splat (i32 -8388608)
  %v115 = sub <16 x i32> %v112, %v114
  %v116 = add <16 x i32> %v115, splat (i32 1065353216)
  %v117 = bitcast <16 x i32> %v116 to <16 x float>
  %v118 = bitcast <16 x float> %v110 to <16 x i32>
  %v119 = add <16 x i32> %v118, %v114
  %v120 = bitcast <16 x i32> %v119 to <16 x float>
  %v121 = fmul <16 x float> %v120, %v117
  %v122 = select <16 x i1> %v92, <16 x float> splat (float 0x0000000000000000), <16 x float> %v121
  %v123 = fpext <16 x float> %v122 to <16 x double>
  %v124 = fadd <16 x double> %v84, %v123
  %v83.next = add i64 %v83, 16
  br label %loop82.head
loop82.exit:
  %v125 = shufflevector <16 x double> %v84, <16 x double> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v126 = shufflevector <16 x double> %v84, <16 x double> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v127 = fadd <8 x double> %v125, %v126
  %v128 = shufflevector <8 x double> %v127, <8 x double> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v129 = shufflevector <8 x double> %v127, <8 x double> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v130 = fadd <4 x double> %v128, %v129
  %v131 = shufflevector <4 x double> %v130, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %v132 = shufflevector <4 x double> %v130, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %v133 = fadd <2 x double> %v131, %v132
  %v134 = extractelement <2 x double> %v133, i32 0
  %v135 = extractelement <2 x double> %v133, i32 1
  %v136 = fadd double %v134, %v135
  %v137 = fadd double 0x0000000000000000, %v136
  br label %loop138.head
loop138.head:
  %v139 = phi i64 [ %v81, %loop82.exit ], [ %v139.next, %loop138.body ]
  %v140 = phi double [ %v137, %loop82.exit ], [ %v178, %loop138.body ]
  %v139.more = icmp slt i64 %v139, 33
  br i1 %v139.more, label %loop138.body, label %loop138.exit
loop138.body:
  %v141 = getelementptr float, ptr %v8, i64 %v139
  %v142 = load float, ptr %v141, align 4
  %v143 = fsub float %v142, %v78
  %v144 = fcmp olt float 0x4056400000000000, %v143
  %v145 = select i1 %v144, float 0x4056400000000000, float %v143
  %v146 = fcmp olt float %v145, 0xC05A000000000000
  %v147 = select i1 %v146, float 0x0000000000000000, float %v145
  %v148 = call float @llvm.fma.f32(float %v147, float 0x3FF7154760000000, float 0x4168000000000000)
  %v149 = fsub float %v148, 0x4168000000000000
  %v150 = call float @llvm.fma.f32(float %v149, float 0xBFE62E4300000000, float %v147)
  %v151 = fmul float %v149, 0x3E205C6100000000
  %v152 = fmul float %v150, %v150
  %v153 = call float @llvm.fma.f32(float 0x3F2A1267E0000000, float %v150, float 0x3F56D44E40000000)
  %v154 = call float @llvm.fma.f32(float %v153, float %v150, float 0x3F81110E00000000)
  %v155 = call float @llvm.fma.f32(float %v154, float %v150, float 0x3FA5554E80000000)
  %v156 = call float @llvm.fma.f32(float %v155, float %v150, float 0x3FC5555560000000)
  %v157 = call float @llvm.fma.f32(float %v156, float %v150, float 0x3FE0000000000000)
  %v158 = fadd float 0x3FF0000000000000, %v150
  %v159 = fsub float %v158, 0x3FF0000000000000
  %v160 = fsub float %v150, %v159
  %v161 = call float @llvm.fma.f32(float %v152, float 0x3FE0000000000000, float %v158)
  %v162 = call float @llvm.fma.f32(float %v151, float %v161, float %v160)
  %v163 = call float @llvm.fma.f32(float %v152, float %v157, float %v162)
  %v164 = fadd float %v158, %v163
  %v165 = bitcast float %v148 to i32
  %v166 = shl i32 %v165, 23
  %v167 = ashr i32 %v166, 1
  %v168 = and i32 %v167, -8388608
  %v169 = sub i32 %v166, %v168
  %v170 = add i32 %v169, 1065353216
  %v171 = bitcast i32 %v170 to float
  %v172 = bitcast float %v164 to i32
  %v173 = add i32 %v172, %v168
  %v174 = bitcast i32 %v173 to float
  %v175 = fmul float %v174, %v171
  %v176 = select i1 %v146, float 0x0000000000000000, float %v175
  %v177 = fpext float %v176 to double
  %v178 = fadd double %v140, %v177
  %v139.next = add i64 %v139, 1
  br label %loop138.head
loop138.exit:
  %v179 = fptrunc double %v140 to float
  %v180 = sub i64 33, 0
  %v181 = and i64 %v180, -16
  %v182 = add i64 0, %v181
  br label %loop183.head
loop183.head:
  %v184 = phi i64 [ 0, %loop138.exit ], [ %v184.next, %loop183.body ]
  %v184.more = icmp slt i64 %v184, %v182
  br i1 %v184.more, label %loop183.body, label %loop183.exit
loop183.body:
  %v185 = getelementptr float, ptr %v8, i64 %v184
  %v186 = getelementptr float, ptr %v10, i64 %v184
  %v187 = load <16 x float>, ptr %v185, align 4
  %v188 = insertelement <16 x float> poison, float %v78, i32 0
  %v189 = shufflevector <16 x float> %v188, <16 x float> poison, <16 x i32> zeroinitializer
  %v190 = fsub <16 x float> %v187, %v189
  %v191 = fcmp olt <16 x float> splat (float 0x4056400000000000), %v190
  %v192 = select <16 x i1> %v191, <16 x float> splat (float 0x4056400000000000), <16 x float> %v190
  %v193 = fcmp olt <16 x float> %v192, splat (float 0xC05A000000000000)
  %v194 = select <16 x i1> %v193, <16 x float> splat (float 0x0000000000000000), <16 x float> %v192
  %v195 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v194, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %v196 = fsub <16 x float> %v195, splat (float 0x4168000000000000)
  %v197 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v196, <16 x float> splat (float 0xBFE62E4300000000), <16 x float> %v194)
  %v198 = fmul <16 x float> %v196, splat (float 0x3E205C6100000000)
  %v199 = fmul <16 x float> %v197, %v197
  %v200 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F2A1267E0000000), <16 x float> %v197, <16 x float> splat (float 0x3F56D44E40000000))
  %v201 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v200, <16 x float> %v197, <16 x float> splat (float 0x3F81110E00000000))
  %v202 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v201, <16 x float> %v197, <16 x float> splat (float 0x3FA5554E80000000))
  %v203 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v202, <16 x float> %v197, <16 x float> splat (float 0x3FC5555560000000))
  %v204 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v203, <16 x float> %v197, <16 x float> splat (float 0x3FE0000000000000))
  %v205 = fadd <16 x float> splat (float 0x3FF0000000000000), %v197
  %v206 = fsub <16 x float> %v205, splat (float 0x3FF0000000000000)
  %v207 = fsub <16 x float> %v197, %v206
  %v208 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v199, <16 x float> splat (float 0x3FE0000000000000), <16 x float> %v205)
  %v209 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v198, <16 x float> %v208, <16 x float> %v207)
  %v210 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v199, <16 x float> %v204, <16 x float> %v209)
  %v211 = fadd <16 x float> %v205, %v210
  %v212 = bitcast <16 x float> %v195 to <16 x i32>
  %v213 = shl <16 x i32> %v212, splat (i32 23)
  %v214 = ashr <16 x i32> %v213, splat (i32 1)
  %v215 = and <16 x i32> %v214, splat (i32 -8388608)
  %v216 = sub <16 x i32> %v213, %v215
  %v217 = add <16 x i32> %v216, splat (i32 1065353216)
  %v218 = bitcast <16 x i32> %v217 to <16 x float>
  %v219 = bitcast <16 x float> %v211 to <16 x i32>
  %v220 = add <16 x i32> %v219, %v215
  %v221 = bitcast <16 x i32> %v220 to <16 x float>
  %v222 = fmul <16 x float> %v221, %v218
  %v223 = select <16 x i1> %v193, <16 x float> splat (float 0x0000000000000000), <16 x float> %v222
  %v224 = insertelement <16 x float> poison, float %v179, i32 0
  %v225 = shufflevector <16 x float> %v224, <16 x float> poison, <16 x i32> zeroinitializer
  %v226 = fdiv <16 x float> %v223, %v225
  store <16 x float> %v226, ptr %v186, align 4
  %v184.next = add i64 %v184, 16
  br label %loop183.head
loop183.exit:
  br label %loop227.head
loop227.head:
  %v228 = phi i64 [ %v182, %loop183.exit ], [ %v228.next, %loop227.body ]
  %v228.more = icmp slt i64 %v228, 33
  br i1 %v228.more, label %loop227.body, label %loop227.exit
loop227.body:
  %v229 = getelementptr float, ptr %v8, i64 %v228
  %v230 = getelementptr float, ptr %v10, i64 %v228
  %v231 = load float, ptr %v229, align 4
  %v232 = fsub float %v231, %v78
  %v233 = fcmp olt float 0x4056400000000000, %v232
  %v234 = select i1 %v233, float 0x4056400000000000, float %v232
  %v235 = fcmp olt float %v234, 0xC05A000000000000
  %v236 = select i1 %v235, float 0x0000000000000000, float %v234
  %v237 = call float @llvm.fma.f32(float %v236, float 0x3FF7154760000000, float 0x4168000000000000)
  %v238 = fsub float %v237, 0x4168000000000000
  %v239 = call float @llvm.fma.f32(float %v238, float 0xBFE62E4300000000, float %v236)
  %v240 = fmul float %v238, 0x3E205C6100000000
  %v241 = fmul float %v239, %v239
  %v242 = call float @llvm.fma.f32(float 0x3F2A1267E0000000, float %v239, float 0x3F56D44E40000000)
  %v243 = call float @llvm.fma.f32(float %v242, float %v239, float 0x3F81110E00000000)
  %v244 = call float @llvm.fma.f32(float %v243, float %v239, float 0x3FA5554E80000000)
  %v245 = call float @llvm.fma.f32(float %v244, float %v239, float 0x3FC5555560000000)
  %v246 = call float @llvm.fma.f32(float %v245, float %v239, float 0x3FE0000000000000)
  %v247 = fadd float 0x3FF0000000000000, %v239
  %v248 = fsub float %v247, 0x3FF0000000000000
  %v249 = fsub float %v239, %v248
  %v250 = call float @llvm.fma.f32(float %v241, float 0x3FE0000000000000, float %v247)
  %v251 = call float @llvm.fma.f32(float %v240, float %v250, float %v249)
  %v252 = call float @llvm.fma.f32(float %v241, float %v246, float %v251)
  %v253 = fadd float %v247, %v252
  %v254 = bitcast float %v237 to i32
  %v255 = shl i32 %v254, 23
  %v256 = ashr i32 %v255, 1
  %v257 = and i32 %v256, -8388608
  %v258 = sub i32 %v255, %v257
  %v259 = add i32 %v258, 1065353216
  %v260 = bitcast i32 %v259 to float
  %v261 = bitcast float %v253 to i32
  %v262 = add i32 %v261, %v257
  %v263 = bitcast i32 %v262 to float
  %v264 = fmul float %v263, %v260
  %v265 = select i1 %v235, float 0x0000000000000000, float %v264
  %v266 = fdiv float %v265, %v179
  store float %v266, ptr %v230, align 4
  %v228.next = add i64 %v228, 1
  br label %loop227.head
loop227.exit:
  %v6.next = add i64 %v6, 1
  br label %loop5.head
loop5.exit:
  ret i64 0
}
declare float @llvm.fma.f32(float, float, float)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
attributes #0 = { nounwind "target-cpu"="x86-64-v3" "min-legal-vector-width"="256" "prefer-vector-width"="256" }
