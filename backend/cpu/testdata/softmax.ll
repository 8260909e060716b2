define void @kernel(ptr %pointers, ptr %scalars, i64 %begin, i64 %end) #0 {
entry:
  %v1 = getelementptr ptr, ptr %pointers, i64 0
  %v2 = load ptr, ptr %v1
  %v3 = getelementptr ptr, ptr %pointers, i64 1
  %v4 = load ptr, ptr %v3
  br label %loop5.head
loop5.head:
  %v6 = phi i64 [ %begin, %entry ], [ %v6.next, %loop228.exit ]
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
  %v80 = and i64 %v79, -32
  %v81 = add i64 0, %v80
  br label %loop82.head
loop82.head:
  %v83 = phi i64 [ 0, %loop69.exit ], [ %v83.next, %loop82.body ]
  %v84 = phi <32 x double> [ splat (double 0x0000000000000000), %loop69.exit ], [ %v112, %loop82.body ]
  %v83.more = icmp slt i64 %v83, %v81
  br i1 %v83.more, label %loop82.body, label %loop82.exit
loop82.body:
  %v85 = getelementptr float, ptr %v8, i64 %v83
  %v86 = load <32 x float>, ptr %v85, align 4
  %v87 = insertelement <32 x float> poison, float %v78, i32 0
  %v88 = shufflevector <32 x float> %v87, <32 x float> poison, <32 x i32> zeroinitializer
  %v89 = fsub <32 x float> %v86, %v88
  %v90 = fpext <32 x float> %v89 to <32 x double>
  %v91 = fcmp olt <32 x double> splat (double 0x4056800000000000), %v90
  %v92 = select <32 x i1> %v91, <32 x double> splat (double 0x4056800000000000), <32 x double> %v90
  %v93 = fcmp olt <32 x double> %v92, splat (double 0xC05B800000000000)
  %v94 = select <32 x i1> %v93, <32 x double> splat (double 0xC05B800000000000), <32 x double> %v92
  %v95 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v94, <32 x double> splat (double 0x3FF71547652B82FE), <32 x double> splat (double 0x4338000000000000))
  %v96 = fsub <32 x double> %v95, splat (double 0x4338000000000000)
  %v97 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v96, <32 x double> splat (double 0xBFE62E42FEFA39EF), <32 x double> %v94)
  %v98 = bitcast <32 x double> %v95 to <32 x i64>
  %v99 = shl <32 x i64> %v98, splat (i64 52)
  %v100 = call <32 x double> @llvm.fma.v32f64(<32 x double> splat (double 0x3F2A15179D80AE96), <32 x double> %v97, <32 x double> splat (double 0x3F56D7543E4127B8))
  %v101 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v100, <32 x double> %v97, <32 x double> splat (double 0x3F81110C632A3088))
  %v102 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v101, <32 x double> %v97, <32 x double> splat (double 0x3FA5554ACCFDB593))
  %v103 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v102, <32 x double> %v97, <32 x double> splat (double 0x3FC55555567532AD))
  %v104 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v103, <32 x double> %v97, <32 x double> splat (double 0x3FE000000287F871))
  %v105 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v104, <32 x double> %v97, <32 x double> splat (double 0x3FF0000000000000))
  %v106 = call <32 x double> @llvm.fma.v32f64(<32 x double> %v97, <32 x double> %v105, <32 x double> splat (double 0x3FF0000000000000))
  %v107 = bitcast <32 x double> %v106 to <32 x i64>
  %v108 = add <32 x i64> %v107, %v99
  %v109 = bitcast <32 x i64> %v108 to <32 x double>
  %v110 = fptrunc <32 x double> %v109 to <32 x float>
  %v111 = fpext <32 x float> %v110 to <32 x double>
  %v112 = fadd <32 x double> %v84, %v111
  %v83.next = add i64 %v83, 32
  br label %loop82.head
loop82.exit:
  %v113 = sub i64 33, %v81
  %v114 = and i64 %v113, -8
  %v115 = add i64 %v81, %v114
  %v116 = shufflevector <32 x double> %v84, <32 x double> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v117 = shufflevector <32 x double> %v84, <32 x double> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v118 = fadd <16 x double> %v116, %v117
  %v119 = shufflevector <16 x double> %v118, <16 x double> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v120 = shufflevector <16 x double> %v118, <16 x double> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v121 = fadd <8 x double> %v119, %v120
  br label %loop122.head
loop122.head:
  %v123 = phi i64 [ %v81, %loop82.exit ], [ %v123.next, %loop122.body ]
  %v124 = phi <8 x double> [ %v121, %loop82.exit ], [ %v152, %loop122.body ]
  %v123.more = icmp slt i64 %v123, %v115
  br i1 %v123.more, label %loop122.body, label %loop122.exit
loop122.body:
  %v125 = getelementptr float, ptr %v8, i64 %v123
  %v126 = load <8 x float>, ptr %v125, align 4
  %v127 = insertelement <8 x float> poison, float %v78, i32 0
  %v128 = shufflevector <8 x float> %v127, <8 x float> poison, <8 x i32> zeroinitializer
  %v129 = fsub <8 x float> %v126, %v128
  %v130 = fpext <8 x float> %v129 to <8 x double>
  %v131 = fcmp olt <8 x double> splat (double 0x4056800000000000), %v130
  %v132 = select <8 x i1> %v131, <8 x double> splat (double 0x4056800000000000), <8 x double> %v130
  %v133 = fcmp olt <8 x double> %v132, splat (double 0xC05B800000000000)
  %v134 = select <8 x i1> %v133, <8 x double> splat (double 0xC05B800000000000), <8 x double> %v132
  %v135 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v134, <8 x double> splat (double 0x3FF71547652B82FE), <8 x double> splat (double 0x4338000000000000))
  %v136 = fsub <8 x double> %v135, splat (double 0x4338000000000000)
  %v137 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v136, <8 x double> splat (double 0xBFE62E42FEFA39EF), <8 x double> %v134)
  %v138 = bitcast <8 x double> %v135 to <8 x i64>
  %v139 = shl <8 x i64> %v138, splat (i64 52)
  %v140 = call <8 x double> @llvm.fma.v8f64(<8 x double> splat (double 0x3F2A15179D80AE96), <8 x double> %v137, <8 x double> splat (double 0x3F56D7543E4127B8))
  %v141 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v140, <8 x double> %v137, <8 x double> splat (double 0x3F81110C632A3088))
  %v142 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v141, <8 x double> %v137, <8 x double> splat (double 0x3FA5554ACCFDB593))
  %v143 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v142, <8 x double> %v137, <8 x double> splat (double 0x3FC55555567532AD))
  %v144 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v143, <8 x double> %v137, <8 x double> splat (double 0x3FE000000287F871))
  %v145 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v144, <8 x double> %v137, <8 x double> splat (double 0x3FF0000000000000))
  %v146 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v137, <8 x double> %v145, <8 x double> splat (double 0x3FF0000000000000))
  %v147 = bitcast <8 x double> %v146 to <8 x i64>
  %v148 = add <8 x i64> %v147, %v139
  %v149 = bitcast <8 x i64> %v148 to <8 x double>
  %v150 = fptrunc <8 x double> %v149 to <8 x float>
  %v151 = fpext <8 x float> %v150 to <8 x double>
  %v152 = fadd <8 x double> %v124, %v151
  %v123.next = add i64 %v123, 8
  br label %loop122.head
loop122.exit:
  %v153 = shufflevector <8 x double> %v124, <8 x double> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v154 = shufflevector <8 x double> %v124, <8 x double> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v155 = fadd <4 x double> %v153, %v154
  %v156 = shufflevector <4 x double> %v155, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %v157 = shufflevector <4 x double> %v155, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %v158 = fadd <2 x double> %v156, %v157
  %v159 = extractelement <2 x double> %v158, i32 0
  %v160 = extractelement <2 x double> %v158, i32 1
  %v161 = fadd double %v159, %v160
  %v162 = fadd double 0x0000000000000000, %v161
  br label %loop163.head
loop163.head:
  %v164 = phi i64 [ %v115, %loop122.exit ], [ %v164.next, %loop163.body ]
  %v165 = phi double [ %v162, %loop122.exit ], [ %v191, %loop163.body ]
  %v164.more = icmp slt i64 %v164, 33
  br i1 %v164.more, label %loop163.body, label %loop163.exit
loop163.body:
  %v166 = getelementptr float, ptr %v8, i64 %v164
  %v167 = load float, ptr %v166, align 4
  %v168 = fsub float %v167, %v78
  %v169 = fpext float %v168 to double
  %v170 = fcmp olt double 0x4056800000000000, %v169
  %v171 = select i1 %v170, double 0x4056800000000000, double %v169
  %v172 = fcmp olt double %v171, 0xC05B800000000000
  %v173 = select i1 %v172, double 0xC05B800000000000, double %v171
  %v174 = call double @llvm.fma.f64(double %v173, double 0x3FF71547652B82FE, double 0x4338000000000000)
  %v175 = fsub double %v174, 0x4338000000000000
  %v176 = call double @llvm.fma.f64(double %v175, double 0xBFE62E42FEFA39EF, double %v173)
  %v177 = bitcast double %v174 to i64
  %v178 = shl i64 %v177, 52
  %v179 = call double @llvm.fma.f64(double 0x3F2A15179D80AE96, double %v176, double 0x3F56D7543E4127B8)
  %v180 = call double @llvm.fma.f64(double %v179, double %v176, double 0x3F81110C632A3088)
  %v181 = call double @llvm.fma.f64(double %v180, double %v176, double 0x3FA5554ACCFDB593)
  %v182 = call double @llvm.fma.f64(double %v181, double %v176, double 0x3FC55555567532AD)
  %v183 = call double @llvm.fma.f64(double %v182, double %v176, double 0x3FE000000287F871)
  %v184 = call double @llvm.fma.f64(double %v183, double %v176, double 0x3FF0000000000000)
  %v185 = call double @llvm.fma.f64(double %v176, double %v184, double 0x3FF0000000000000)
  %v186 = bitcast double %v185 to i64
  %v187 = add i64 %v186, %v178
  %v188 = bitcast i64 %v187 to double
  %v189 = fptrunc double %v188 to float
  %v190 = fpext float %v189 to double
  %v191 = fadd double %v165, %v190
  %v164.next = add i64 %v164, 1
  br label %loop163.head
loop163.exit:
  %v192 = fptrunc double %v165 to float
  %v193 = sub i64 33, 0
  %v194 = and i64 %v193, -8
  %v195 = add i64 0, %v194
  br label %loop196.head
loop196.head:
  %v197 = phi i64 [ 0, %loop163.exit ], [ %v197.next, %loop196.body ]
  %v197.more = icmp slt i64 %v197, %v195
  br i1 %v197.more, label %loop196.body, label %loop196.exit
loop196.body:
  %v198 = getelementptr float, ptr %v8, i64 %v197
  %v199 = getelementptr float, ptr %v10, i64 %v197
  %v200 = load <8 x float>, ptr %v198, align 4
  %v201 = insertelement <8 x float> poison, float %v78, i32 0
  %v202 = shufflevector <8 x float> %v201, <8 x float> poison, <8 x i32> zeroinitializer
  %v203 = fsub <8 x float> %v200, %v202
  %v204 = fpext <8 x float> %v203 to <8 x double>
  %v205 = fcmp olt <8 x double> splat (double 0x4056800000000000), %v204
  %v206 = select <8 x i1> %v205, <8 x double> splat (double 0x4056800000000000), <8 x double> %v204
  %v207 = fcmp olt <8 x double> %v206, splat (double 0xC05B800000000000)
  %v208 = select <8 x i1> %v207, <8 x double> splat (double 0xC05B800000000000), <8 x double> %v206
  %v209 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v208, <8 x double> splat (double 0x3FF71547652B82FE), <8 x double> splat (double 0x4338000000000000))
  %v210 = fsub <8 x double> %v209, splat (double 0x4338000000000000)
  %v211 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v210, <8 x double> splat (double 0xBFE62E42FEFA39EF), <8 x double> %v208)
  %v212 = bitcast <8 x double> %v209 to <8 x i64>
  %v213 = shl <8 x i64> %v212, splat (i64 52)
  %v214 = call <8 x double> @llvm.fma.v8f64(<8 x double> splat (double 0x3F2A15179D80AE96), <8 x double> %v211, <8 x double> splat (double 0x3F56D7543E4127B8))
  %v215 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v214, <8 x double> %v211, <8 x double> splat (double 0x3F81110C632A3088))
  %v216 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v215, <8 x double> %v211, <8 x double> splat (double 0x3FA5554ACCFDB593))
  %v217 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v216, <8 x double> %v211, <8 x double> splat (double 0x3FC55555567532AD))
  %v218 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v217, <8 x double> %v211, <8 x double> splat (double 0x3FE000000287F871))
  %v219 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v218, <8 x double> %v211, <8 x double> splat (double 0x3FF0000000000000))
  %v220 = call <8 x double> @llvm.fma.v8f64(<8 x double> %v211, <8 x double> %v219, <8 x double> splat (double 0x3FF0000000000000))
  %v221 = bitcast <8 x double> %v220 to <8 x i64>
  %v222 = add <8 x i64> %v221, %v213
  %v223 = bitcast <8 x i64> %v222 to <8 x double>
  %v224 = fptrunc <8 x double> %v223 to <8 x float>
  %v225 = insertelement <8 x float> poison, float %v192, i32 0
  %v226 = shufflevector <8 x float> %v225, <8 x float> poison, <8 x i32> zeroinitializer
  %v227 = fdiv <8 x float> %v224, %v226
  store <8 x float> %v227, ptr %v199, align 4
  %v197.next = add i64 %v197, 8
  br label %loop196.head
loop196.exit:
  br label %loop228.head
loop228.head:
  %v229 = phi i64 [ %v195, %loop196.exit ], [ %v229.next, %loop228.body ]
  %v229.more = icmp slt i64 %v229, 33
  br i1 %v229.more, label %loop228.body, label %loop228.exit
loop228.body:
  %v230 = getelementptr float, ptr %v8, i64 %v229
  %v231 = getelementptr float, ptr %v10, i64 %v229
  %v232 = load float, ptr %v230, align 4
  %v233 = fsub float %v232, %v78
  %v234 = fpext float %v233 to double
  %v235 = fcmp olt double 0x4056800000000000, %v234
  %v236 = select i1 %v235, double 0x4056800000000000, double %v234
  %v237 = fcmp olt double %v236, 0xC05B800000000000
  %v238 = select i1 %v237, double 0xC05B800000000000, double %v236
  %v239 = call double @llvm.fma.f64(double %v238, double 0x3FF71547652B82FE, double 0x4338000000000000)
  %v240 = fsub double %v239, 0x4338000000000000
  %v241 = call double @llvm.fma.f64(double %v240, double 0xBFE62E42FEFA39EF, double %v238)
  %v242 = bitcast double %v239 to i64
  %v243 = shl i64 %v242, 52
  %v244 = call double @llvm.fma.f64(double 0x3F2A15179D80AE96, double %v241, double 0x3F56D7543E4127B8)
  %v245 = call double @llvm.fma.f64(double %v244, double %v241, double 0x3F81110C632A3088)
  %v246 = call double @llvm.fma.f64(double %v245, double %v241, double 0x3FA5554ACCFDB593)
  %v247 = call double @llvm.fma.f64(double %v246, double %v241, double 0x3FC55555567532AD)
  %v248 = call double @llvm.fma.f64(double %v247, double %v241, double 0x3FE000000287F871)
  %v249 = call double @llvm.fma.f64(double %v248, double %v241, double 0x3FF0000000000000)
  %v250 = call double @llvm.fma.f64(double %v241, double %v249, double 0x3FF0000000000000)
  %v251 = bitcast double %v250 to i64
  %v252 = add i64 %v251, %v243
  %v253 = bitcast i64 %v252 to double
  %v254 = fptrunc double %v253 to float
  %v255 = fdiv float %v254, %v192
  store float %v255, ptr %v231, align 4
  %v229.next = add i64 %v229, 1
  br label %loop228.head
loop228.exit:
  %v6.next = add i64 %v6, 1
  br label %loop5.head
loop5.exit:
  ret void
}
declare double @llvm.fma.f64(double, double, double)
declare <32 x double> @llvm.fma.v32f64(<32 x double>, <32 x double>, <32 x double>)
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
attributes #0 = { nounwind "target-cpu"="x86-64-v3" "min-legal-vector-width"="256" "prefer-vector-width"="256" }
