define i64 @kernel(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  %v1 = getelementptr ptr, ptr %pointers, i64 0
  %v2 = load ptr, ptr %v1
  %v3 = getelementptr ptr, ptr %pointers, i64 1
  %v4 = load ptr, ptr %v3
  br label %loop5.head
loop5.head:
  %v6 = phi i64 [ %begin, %entry ], [ %v6.next, %loop191.exit ]
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
  %v84 = phi <16 x double> [ splat (double 0x0000000000000000), %loop69.exit ], [ %v112, %loop82.body ]
  %v83.more = icmp slt i64 %v83, %v81
  br i1 %v83.more, label %loop82.body, label %loop82.exit
loop82.body:
  %v85 = getelementptr float, ptr %v8, i64 %v83
  %v86 = load <16 x float>, ptr %v85, align 4
  %v87 = insertelement <16 x float> poison, float %v78, i32 0
  %v88 = shufflevector <16 x float> %v87, <16 x float> poison, <16 x i32> zeroinitializer
  %v89 = fsub <16 x float> %v86, %v88
  %v90 = fpext <16 x float> %v89 to <16 x double>
  %v91 = fcmp olt <16 x double> splat (double 0x4056800000000000), %v90
  %v92 = select <16 x i1> %v91, <16 x double> splat (double 0x4056800000000000), <16 x double> %v90
  %v93 = fcmp olt <16 x double> %v92, splat (double 0xC05B800000000000)
  %v94 = select <16 x i1> %v93, <16 x double> splat (double 0xC05B800000000000), <16 x double> %v92
  %v95 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v94, <16 x double> splat (double 0x3FF71547652B82FE), <16 x double> splat (double 0x4338000000000000))
  %v96 = fsub <16 x double> %v95, splat (double 0x4338000000000000)
  %v97 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v96, <16 x double> splat (double 0xBFE62E42FEFA39EF), <16 x double> %v94)
  %v98 = bitcast <16 x double> %v95 to <16 x i64>
  %v99 = shl <16 x i64> %v98, splat (i64 52)
  %v100 = call <16 x double> @llvm.fma.v16f64(<16 x double> splat (double 0x3F2A15179D80AE96), <16 x double> %v97, <16 x double> splat (double 0x3F56D7543E4127B8))
  %v101 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v100, <16 x double> %v97, <16 x double> splat (double 0x3F81110C632A3088))
  %v102 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v101, <16 x double> %v97, <16 x double> splat (double 0x3FA5554ACCFDB593))
  %v103 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v102, <16 x double> %v97, <16 x double> splat (double 0x3FC55555567532AD))
  %v104 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v103, <16 x double> %v97, <16 x double> splat (double 0x3FE000000287F871))
  %v105 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v104, <16 x double> %v97, <16 x double> splat (double 0x3FF0000000000000))
  %v106 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v97, <16 x double> %v105, <16 x double> splat (double 0x3FF0000000000000))
  %v107 = bitcast <16 x double> %v106 to <16 x i64>
  %v108 = add <16 x i64> %v107, %v99
  %v109 = bitcast <16 x i64> %v108 to <16 x double>
  %v110 = fptrunc <16 x double> %v109 to <16 x float>
  %v111 = fpext <16 x float> %v110 to <16 x double>
  %v112 = fadd <16 x double> %v84, %v111
  %v83.next = add i64 %v83, 16
  br label %loop82.head
loop82.exit:
  %v113 = shufflevector <16 x double> %v84, <16 x double> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v114 = shufflevector <16 x double> %v84, <16 x double> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v115 = fadd <8 x double> %v113, %v114
  %v116 = shufflevector <8 x double> %v115, <8 x double> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v117 = shufflevector <8 x double> %v115, <8 x double> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v118 = fadd <4 x double> %v116, %v117
  %v119 = shufflevector <4 x double> %v118, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %v120 = shufflevector <4 x double> %v118, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %v121 = fadd <2 x double> %v119, %v120
  %v122 = extractelement <2 x double> %v121, i32 0
  %v123 = extractelement <2 x double> %v121, i32 1
  %v124 = fadd double %v122, %v123
  %v125 = fadd double 0x0000000000000000, %v124
  br label %loop126.head
loop126.head:
  %v127 = phi i64 [ %v81, %loop82.exit ], [ %v127.next, %loop126.body ]
  %v128 = phi double [ %v125, %loop82.exit ], [ %v154, %loop126.body ]
  %v127.more = icmp slt i64 %v127, 33
  br i1 %v127.more, label %loop126.body, label %loop126.exit
loop126.body:
  %v129 = getelementptr float, ptr %v8, i64 %v127
  %v130 = load float, ptr %v129, align 4
  %v131 = fsub float %v130, %v78
  %v132 = fpext float %v131 to double
  %v133 = fcmp olt double 0x4056800000000000, %v132
  %v134 = select i1 %v133, double 0x4056800000000000, double %v132
  %v135 = fcmp olt double %v134, 0xC05B800000000000
  %v136 = select i1 %v135, double 0xC05B800000000000, double %v134
  %v137 = call double @llvm.fma.f64(double %v136, double 0x3FF71547652B82FE, double 0x4338000000000000)
  %v138 = fsub double %v137, 0x4338000000000000
  %v139 = call double @llvm.fma.f64(double %v138, double 0xBFE62E42FEFA39EF, double %v136)
  %v140 = bitcast double %v137 to i64
  %v141 = shl i64 %v140, 52
  %v142 = call double @llvm.fma.f64(double 0x3F2A15179D80AE96, double %v139, double 0x3F56D7543E4127B8)
  %v143 = call double @llvm.fma.f64(double %v142, double %v139, double 0x3F81110C632A3088)
  %v144 = call double @llvm.fma.f64(double %v143, double %v139, double 0x3FA5554ACCFDB593)
  %v145 = call double @llvm.fma.f64(double %v144, double %v139, double 0x3FC55555567532AD)
  %v146 = call double @llvm.fma.f64(double %v145, double %v139, double 0x3FE000000287F871)
  %v147 = call double @llvm.fma.f64(double %v146, double %v139, double 0x3FF0000000000000)
  %v148 = call double @llvm.fma.f64(double %v139, double %v147, double 0x3FF0000000000000)
  %v149 = bitcast double %v148 to i64
  %v150 = add i64 %v149, %v141
  %v151 = bitcast i64 %v150 to double
  %v152 = fptrunc double %v151 to float
  %v153 = fpext float %v152 to double
  %v154 = fadd double %v128, %v153
  %v127.next = add i64 %v127, 1
  br label %loop126.head
loop126.exit:
  %v155 = fptrunc double %v128 to float
  %v156 = sub i64 33, 0
  %v157 = and i64 %v156, -16
  %v158 = add i64 0, %v157
  br label %loop159.head
loop159.head:
  %v160 = phi i64 [ 0, %loop126.exit ], [ %v160.next, %loop159.body ]
  %v160.more = icmp slt i64 %v160, %v158
  br i1 %v160.more, label %loop159.body, label %loop159.exit
loop159.body:
  %v161 = getelementptr float, ptr %v8, i64 %v160
  %v162 = getelementptr float, ptr %v10, i64 %v160
  %v163 = load <16 x float>, ptr %v161, align 4
  %v164 = insertelement <16 x float> poison, float %v78, i32 0
  %v165 = shufflevector <16 x float> %v164, <16 x float> poison, <16 x i32> zeroinitializer
  %v166 = fsub <16 x float> %v163, %v165
  %v167 = fpext <16 x float> %v166 to <16 x double>
  %v168 = fcmp olt <16 x double> splat (double 0x4056800000000000), %v167
  %v169 = select <16 x i1> %v168, <16 x double> splat (double 0x4056800000000000), <16 x double> %v167
  %v170 = fcmp olt <16 x double> %v169, splat (double 0xC05B800000000000)
  %v171 = select <16 x i1> %v170, <16 x double> splat (double 0xC05B800000000000), <16 x double> %v169
  %v172 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v171, <16 x double> splat (double 0x3FF71547652B82FE), <16 x double> splat (double 0x4338000000000000))
  %v173 = fsub <16 x double> %v172, splat (double 0x4338000000000000)
  %v174 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v173, <16 x double> splat (double 0xBFE62E42FEFA39EF), <16 x double> %v171)
  %v175 = bitcast <16 x double> %v172 to <16 x i64>
  %v176 = shl <16 x i64> %v175, splat (i64 52)
  %v177 = call <16 x double> @llvm.fma.v16f64(<16 x double> splat (double 0x3F2A15179D80AE96), <16 x double> %v174, <16 x double> splat (double 0x3F56D7543E4127B8))
  %v178 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v177, <16 x double> %v174, <16 x double> splat (double 0x3F81110C632A3088))
  %v179 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v178, <16 x double> %v174, <16 x double> splat (double 0x3FA5554ACCFDB593))
  %v180 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v179, <16 x double> %v174, <16 x double> splat (double 0x3FC55555567532AD))
  %v181 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v180, <16 x double> %v174, <16 x double> splat (double 0x3FE000000287F871))
  %v182 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v181, <16 x double> %v174, <16 x double> splat (double 0x3FF0000000000000))
  %v183 = call <16 x double> @llvm.fma.v16f64(<16 x double> %v174, <16 x double> %v182, <16 x double> splat (double 0x3FF0000000000000))
  %v184 = bitcast <16 x double> %v183 to <16 x i64>
  %v185 = add <16 x i64> %v184, %v176
  %v186 = bitcast <16 x i64> %v185 to <16 x double>
  %v187 = fptrunc <16 x double> %v186 to <16 x float>
  %v188 = insertelement <16 x float> poison, float %v155, i32 0
  %v189 = shufflevector <16 x float> %v188, <16 x float> poison, <16 x i32> zeroinitializer
  %v190 = fdiv <16 x float> %v187, %v189
  store <16 x float> %v190, ptr %v162, align 4
  %v160.next = add i64 %v160, 16
  br label %loop159.head
loop159.exit:
  br label %loop191.head
loop191.head:
  %v192 = phi i64 [ %v158, %loop159.exit ], [ %v192.next, %loop191.body ]
  %v192.more = icmp slt i64 %v192, 33
  br i1 %v192.more, label %loop191.body, label %loop191.exit
loop191.body:
  %v193 = getelementptr float, ptr %v8, i64 %v192
  %v194 = getelementptr float, ptr %v10, i64 %v192
  %v195 = load float, ptr %v193, align 4
  %v196 = fsub float %v195, %v78
  %v197 = fpext float %v196 to double
  %v198 = fcmp olt double 0x4056800000000000, %v197
  %v199 = select i1 %v198, double 0x4056800000000000, double %v197
  %v200 = fcmp olt double %v199, 0xC05B800000000000
  %v201 = select i1 %v200, double 0xC05B800000000000, double %v199
  %v202 = call double @llvm.fma.f64(double %v201, double 0x3FF71547652B82FE, double 0x4338000000000000)
  %v203 = fsub double %v202, 0x4338000000000000
  %v204 = call double @llvm.fma.f64(double %v203, double 0xBFE62E42FEFA39EF, double %v201)
  %v205 = bitcast double %v202 to i64
  %v206 = shl i64 %v205, 52
  %v207 = call double @llvm.fma.f64(double 0x3F2A15179D80AE96, double %v204, double 0x3F56D7543E4127B8)
  %v208 = call double @llvm.fma.f64(double %v207, double %v204, double 0x3F81110C632A3088)
  %v209 = call double @llvm.fma.f64(double %v208, double %v204, double 0x3FA5554ACCFDB593)
  %v210 = call double @llvm.fma.f64(double %v209, double %v204, double 0x3FC55555567532AD)
  %v211 = call double @llvm.fma.f64(double %v210, double %v204, double 0x3FE000000287F871)
  %v212 = call double @llvm.fma.f64(double %v211, double %v204, double 0x3FF0000000000000)
  %v213 = call double @llvm.fma.f64(double %v204, double %v212, double 0x3FF0000000000000)
  %v214 = bitcast double %v213 to i64
  %v215 = add i64 %v214, %v206
  %v216 = bitcast i64 %v215 to double
  %v217 = fptrunc double %v216 to float
  %v218 = fdiv float %v217, %v155
  store float %v218, ptr %v194, align 4
  %v192.next = add i64 %v192, 1
  br label %loop191.head
loop191.exit:
  %v6.next = add i64 %v6, 1
  br label %loop5.head
loop5.exit:
  ret i64 0
}
declare double @llvm.fma.f64(double, double, double)
declare <16 x double> @llvm.fma.v16f64(<16 x double>, <16 x double>, <16 x double>)
attributes #0 = { nounwind "target-cpu"="x86-64-v3" "min-legal-vector-width"="256" "prefer-vector-width"="256" }
