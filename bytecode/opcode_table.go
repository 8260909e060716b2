package bytecode

// Opcode is the number of an instruction of CPython 3.11.
type Opcode uint8

// The opcodes of CPython 3.11, by the names that dis prints.
const (
	Cache                    Opcode = 0
	PopTop                   Opcode = 1
	PushNull                 Opcode = 2
	Nop                      Opcode = 9
	UnaryPositive            Opcode = 10
	UnaryNegative            Opcode = 11
	UnaryNot                 Opcode = 12
	UnaryInvert              Opcode = 15
	BinarySubscr             Opcode = 25
	GetLen                   Opcode = 30
	MatchMapping             Opcode = 31
	MatchSequence            Opcode = 32
	MatchKeys                Opcode = 33
	PushExcInfo              Opcode = 35
	CheckExcMatch            Opcode = 36
	CheckEgMatch             Opcode = 37
	WithExceptStart          Opcode = 49
	GetAiter                 Opcode = 50
	GetAnext                 Opcode = 51
	BeforeAsyncWith          Opcode = 52
	BeforeWith               Opcode = 53
	EndAsyncFor              Opcode = 54
	StoreSubscr              Opcode = 60
	DeleteSubscr             Opcode = 61
	GetIter                  Opcode = 68
	GetYieldFromIter         Opcode = 69
	PrintExpr                Opcode = 70
	LoadBuildClass           Opcode = 71
	LoadAssertionError       Opcode = 74
	ReturnGenerator          Opcode = 75
	ListToTuple              Opcode = 82
	ReturnValue              Opcode = 83
	ImportStar               Opcode = 84
	SetupAnnotations         Opcode = 85
	YieldValue               Opcode = 86
	AsyncGenWrap             Opcode = 87
	PrepReraiseStar          Opcode = 88
	PopExcept                Opcode = 89
	StoreName                Opcode = 90
	DeleteName               Opcode = 91
	UnpackSequence           Opcode = 92
	ForIter                  Opcode = 93
	UnpackEx                 Opcode = 94
	StoreAttr                Opcode = 95
	DeleteAttr               Opcode = 96
	StoreGlobal              Opcode = 97
	DeleteGlobal             Opcode = 98
	Swap                     Opcode = 99
	LoadConst                Opcode = 100
	LoadName                 Opcode = 101
	BuildTuple               Opcode = 102
	BuildList                Opcode = 103
	BuildSet                 Opcode = 104
	BuildMap                 Opcode = 105
	LoadAttr                 Opcode = 106
	CompareOp                Opcode = 107
	ImportName               Opcode = 108
	ImportFrom               Opcode = 109
	JumpForward              Opcode = 110
	JumpIfFalseOrPop         Opcode = 111
	JumpIfTrueOrPop          Opcode = 112
	PopJumpForwardIfFalse    Opcode = 114
	PopJumpForwardIfTrue     Opcode = 115
	LoadGlobal               Opcode = 116
	IsOp                     Opcode = 117
	ContainsOp               Opcode = 118
	Reraise                  Opcode = 119
	Copy                     Opcode = 120
	BinaryOp                 Opcode = 122
	Send                     Opcode = 123
	LoadFast                 Opcode = 124
	StoreFast                Opcode = 125
	DeleteFast               Opcode = 126
	PopJumpForwardIfNotNone  Opcode = 128
	PopJumpForwardIfNone     Opcode = 129
	RaiseVarargs             Opcode = 130
	GetAwaitable             Opcode = 131
	MakeFunction             Opcode = 132
	BuildSlice               Opcode = 133
	JumpBackwardNoInterrupt  Opcode = 134
	MakeCell                 Opcode = 135
	LoadClosure              Opcode = 136
	LoadDeref                Opcode = 137
	StoreDeref               Opcode = 138
	DeleteDeref              Opcode = 139
	JumpBackward             Opcode = 140
	CallFunctionEx           Opcode = 142
	ExtendedArg              Opcode = 144
	ListAppend               Opcode = 145
	SetAdd                   Opcode = 146
	MapAdd                   Opcode = 147
	LoadClassderef           Opcode = 148
	CopyFreeVars             Opcode = 149
	Resume                   Opcode = 151
	MatchClass               Opcode = 152
	FormatValue              Opcode = 155
	BuildConstKeyMap         Opcode = 156
	BuildString              Opcode = 157
	LoadMethod               Opcode = 160
	ListExtend               Opcode = 162
	SetUpdate                Opcode = 163
	DictMerge                Opcode = 164
	DictUpdate               Opcode = 165
	Precall                  Opcode = 166
	Call                     Opcode = 171
	KwNames                  Opcode = 172
	PopJumpBackwardIfNotNone Opcode = 173
	PopJumpBackwardIfNone    Opcode = 174
	PopJumpBackwardIfFalse   Opcode = 175
	PopJumpBackwardIfTrue    Opcode = 176
)

// firstWithArgument is dis.HAVE_ARGUMENT: opcodes from here on use their argument byte.
const firstWithArgument = StoreName

// opcodes has one row per opcode; names, decoding, assembly, stack depth and disassembly all derive from it.
// It is never written to. Sources: CPython 3.11's Lib/opcode.py, stack_effect in Python/compile.c and Python/ceval.c.
var opcodes = [256]OpcodeInfo{
	Cache:                    {Name: "CACHE", Stack: ""},
	PopTop:                   {Name: "POP_TOP", effect: -1, Stack: "value --"},
	PushNull:                 {Name: "PUSH_NULL", effect: 1, Stack: "-- NULL"},
	Nop:                      {Name: "NOP", Stack: "--"},
	UnaryPositive:            {Name: "UNARY_POSITIVE", Stack: "value -- +value"},
	UnaryNegative:            {Name: "UNARY_NEGATIVE", Stack: "value -- -value"},
	UnaryNot:                 {Name: "UNARY_NOT", Stack: "value -- not value"},
	UnaryInvert:              {Name: "UNARY_INVERT", Stack: "value -- ~value"},
	BinarySubscr:             {Name: "BINARY_SUBSCR", Caches: 4, effect: -1, Stack: "container, key -- container[key]"},
	GetLen:                   {Name: "GET_LEN", effect: 1, Stack: "subject -- subject, len(subject)"},
	MatchMapping:             {Name: "MATCH_MAPPING", effect: 1, Stack: "subject -- subject, is mapping"},
	MatchSequence:            {Name: "MATCH_SEQUENCE", effect: 1, Stack: "subject -- subject, is sequence"},
	MatchKeys:                {Name: "MATCH_KEYS", effect: 1, Stack: "subject, keys -- subject, keys, values or None"},
	PushExcInfo:              {Name: "PUSH_EXC_INFO", effect: 1, Stack: "exception -- previous exception, exception"},
	CheckExcMatch:            {Name: "CHECK_EXC_MATCH", Stack: "exception, type -- exception, matches"},
	CheckEgMatch:             {Name: "CHECK_EG_MATCH", Stack: "group, type -- rest, matched or None"},
	WithExceptStart:          {Name: "WITH_EXCEPT_START", effect: 1, Stack: "exit, lasti, previous exception, exception -- exit, lasti, previous exception, exception, exit result"},
	GetAiter:                 {Name: "GET_AITER", Stack: "iterable -- asynchronous iterator"},
	GetAnext:                 {Name: "GET_ANEXT", effect: 1, Stack: "iterator -- iterator, awaitable"},
	BeforeAsyncWith:          {Name: "BEFORE_ASYNC_WITH", effect: 1, Stack: "manager -- exit, awaitable of enter"},
	BeforeWith:               {Name: "BEFORE_WITH", effect: 1, Stack: "manager -- exit, enter result"},
	EndAsyncFor:              {Name: "END_ASYNC_FOR", effect: -2, Stack: "iterator, exception --"},
	StoreSubscr:              {Name: "STORE_SUBSCR", Caches: 1, effect: -3, Stack: "value, container, key --"},
	DeleteSubscr:             {Name: "DELETE_SUBSCR", effect: -2, Stack: "container, key --"},
	GetIter:                  {Name: "GET_ITER", Stack: "iterable -- iterator"},
	GetYieldFromIter:         {Name: "GET_YIELD_FROM_ITER", Stack: "iterable -- iterator"},
	PrintExpr:                {Name: "PRINT_EXPR", effect: -1, Stack: "value --"},
	LoadBuildClass:           {Name: "LOAD_BUILD_CLASS", effect: 1, Stack: "-- build_class"},
	LoadAssertionError:       {Name: "LOAD_ASSERTION_ERROR", effect: 1, Stack: "-- AssertionError"},
	ReturnGenerator:          {Name: "RETURN_GENERATOR", Stack: "caller value -- generator"},
	ListToTuple:              {Name: "LIST_TO_TUPLE", Stack: "list -- tuple"},
	ReturnValue:              {Name: "RETURN_VALUE", EndsBlock: true, effect: -1, Stack: "value --"},
	ImportStar:               {Name: "IMPORT_STAR", effect: -1, Stack: "module --"},
	SetupAnnotations:         {Name: "SETUP_ANNOTATIONS", Stack: "--"},
	YieldValue:               {Name: "YIELD_VALUE", Stack: "value -- sent value"},
	AsyncGenWrap:             {Name: "ASYNC_GEN_WRAP", Stack: "value -- wrapped value"},
	PrepReraiseStar:          {Name: "PREP_RERAISE_STAR", effect: -1, Stack: "original, list -- exception or None"},
	PopExcept:                {Name: "POP_EXCEPT", effect: -1, Stack: "previous exception --"},
	StoreName:                {Name: "STORE_NAME", Argument: ArgumentName, effect: -1, Stack: "value --"},
	DeleteName:               {Name: "DELETE_NAME", Argument: ArgumentName, Stack: "--"},
	UnpackSequence:           {Name: "UNPACK_SEQUENCE", Caches: 1, Argument: ArgumentNumber, effect: -1, perArgument: 1, Stack: "sequence -- last … first (arg items)"},
	ForIter:                  {Name: "FOR_ITER", Argument: ArgumentJump, Jump: ForwardJump, effect: 1, jumpEffect: -1, Stack: "iterator -- iterator, next; at the end: iterator --"},
	UnpackEx:                 {Name: "UNPACK_EX", Argument: ArgumentNumber, rule: unpackExEffect, Stack: "sequence -- arg>>8 items, list, arg&255 items"},
	StoreAttr:                {Name: "STORE_ATTR", Caches: 4, Argument: ArgumentName, effect: -2, Stack: "value, object --"},
	DeleteAttr:               {Name: "DELETE_ATTR", Argument: ArgumentName, effect: -1, Stack: "object --"},
	StoreGlobal:              {Name: "STORE_GLOBAL", Argument: ArgumentName, effect: -1, Stack: "value --"},
	DeleteGlobal:             {Name: "DELETE_GLOBAL", Argument: ArgumentName, Stack: "--"},
	Swap:                     {Name: "SWAP", Argument: ArgumentNumber, Stack: "exchanges the top with the arg-th from the top"},
	LoadConst:                {Name: "LOAD_CONST", Argument: ArgumentConstant, effect: 1, Stack: "-- constant"},
	LoadName:                 {Name: "LOAD_NAME", Argument: ArgumentName, effect: 1, Stack: "-- value"},
	BuildTuple:               {Name: "BUILD_TUPLE", Argument: ArgumentNumber, effect: 1, perArgument: -1, Stack: "arg items -- tuple"},
	BuildList:                {Name: "BUILD_LIST", Argument: ArgumentNumber, effect: 1, perArgument: -1, Stack: "arg items -- list"},
	BuildSet:                 {Name: "BUILD_SET", Argument: ArgumentNumber, effect: 1, perArgument: -1, Stack: "arg items -- set"},
	BuildMap:                 {Name: "BUILD_MAP", Argument: ArgumentNumber, effect: 1, perArgument: -2, Stack: "arg pairs of key, value -- dict"},
	LoadAttr:                 {Name: "LOAD_ATTR", Caches: 4, Argument: ArgumentName, Stack: "object -- object.name"},
	CompareOp:                {Name: "COMPARE_OP", Caches: 2, Argument: ArgumentComparison, effect: -1, Stack: "left, right -- result"},
	ImportName:               {Name: "IMPORT_NAME", Argument: ArgumentName, effect: -1, Stack: "level, from list -- module"},
	ImportFrom:               {Name: "IMPORT_FROM", Argument: ArgumentName, effect: 1, Stack: "module -- module, attribute"},
	JumpForward:              {Name: "JUMP_FORWARD", Argument: ArgumentJump, Jump: ForwardJump, opposite: JumpBackward, EndsBlock: true, Stack: "--"},
	JumpIfFalseOrPop:         {Name: "JUMP_IF_FALSE_OR_POP", Argument: ArgumentJump, Jump: ForwardJump, effect: -1, Stack: "value -- ; when jumping: value -- value"},
	JumpIfTrueOrPop:          {Name: "JUMP_IF_TRUE_OR_POP", Argument: ArgumentJump, Jump: ForwardJump, effect: -1, Stack: "value -- ; when jumping: value -- value"},
	PopJumpForwardIfFalse:    {Name: "POP_JUMP_FORWARD_IF_FALSE", Argument: ArgumentJump, Jump: ForwardJump, opposite: PopJumpBackwardIfFalse, effect: -1, jumpEffect: -1, Stack: "value --"},
	PopJumpForwardIfTrue:     {Name: "POP_JUMP_FORWARD_IF_TRUE", Argument: ArgumentJump, Jump: ForwardJump, opposite: PopJumpBackwardIfTrue, effect: -1, jumpEffect: -1, Stack: "value --"},
	LoadGlobal:               {Name: "LOAD_GLOBAL", Caches: 5, Argument: ArgumentGlobalName, rule: loadGlobalEffect, Stack: "-- value; with arg&1: -- NULL, value"},
	IsOp:                     {Name: "IS_OP", Argument: ArgumentNumber, effect: -1, Stack: "left, right -- result"},
	ContainsOp:               {Name: "CONTAINS_OP", Argument: ArgumentNumber, effect: -1, Stack: "item, container -- result"},
	Reraise:                  {Name: "RERAISE", Argument: ArgumentNumber, EndsBlock: true, effect: -1, Stack: "exception --; arg places below it: lasti"},
	Copy:                     {Name: "COPY", Argument: ArgumentNumber, effect: 1, Stack: "copies the arg-th from the top onto the top"},
	BinaryOp:                 {Name: "BINARY_OP", Caches: 1, Argument: ArgumentOperator, effect: -1, Stack: "left, right -- result"},
	Send:                     {Name: "SEND", Argument: ArgumentJump, Jump: ForwardJump, jumpEffect: -1, Stack: "receiver, value -- receiver, yielded; when jumping: receiver, value -- returned"},
	LoadFast:                 {Name: "LOAD_FAST", Argument: ArgumentLocal, effect: 1, Stack: "-- value"},
	StoreFast:                {Name: "STORE_FAST", Argument: ArgumentLocal, effect: -1, Stack: "value --"},
	DeleteFast:               {Name: "DELETE_FAST", Argument: ArgumentLocal, Stack: "--"},
	PopJumpForwardIfNotNone:  {Name: "POP_JUMP_FORWARD_IF_NOT_NONE", Argument: ArgumentJump, Jump: ForwardJump, opposite: PopJumpBackwardIfNotNone, effect: -1, jumpEffect: -1, Stack: "value --"},
	PopJumpForwardIfNone:     {Name: "POP_JUMP_FORWARD_IF_NONE", Argument: ArgumentJump, Jump: ForwardJump, opposite: PopJumpBackwardIfNone, effect: -1, jumpEffect: -1, Stack: "value --"},
	RaiseVarargs:             {Name: "RAISE_VARARGS", Argument: ArgumentNumber, EndsBlock: true, perArgument: -1, Stack: "arg of exception, cause --"},
	GetAwaitable:             {Name: "GET_AWAITABLE", Argument: ArgumentNumber, Stack: "awaitable -- iterator"},
	MakeFunction:             {Name: "MAKE_FUNCTION", Argument: ArgumentFunctionParts, rule: makeFunctionEffect, Stack: "one item per bit of arg, code -- function"},
	BuildSlice:               {Name: "BUILD_SLICE", Argument: ArgumentNumber, rule: buildSliceEffect, Stack: "start, stop, step if arg is 3 -- slice"},
	JumpBackwardNoInterrupt:  {Name: "JUMP_BACKWARD_NO_INTERRUPT", Argument: ArgumentJump, Jump: BackwardJump, opposite: JumpForward, EndsBlock: true, Stack: "--"},
	MakeCell:                 {Name: "MAKE_CELL", Argument: ArgumentVariable, Stack: "--"},
	LoadClosure:              {Name: "LOAD_CLOSURE", Argument: ArgumentVariable, effect: 1, Stack: "-- cell"},
	LoadDeref:                {Name: "LOAD_DEREF", Argument: ArgumentVariable, effect: 1, Stack: "-- value"},
	StoreDeref:               {Name: "STORE_DEREF", Argument: ArgumentVariable, effect: -1, Stack: "value --"},
	DeleteDeref:              {Name: "DELETE_DEREF", Argument: ArgumentVariable, Stack: "--"},
	JumpBackward:             {Name: "JUMP_BACKWARD", Argument: ArgumentJump, Jump: BackwardJump, opposite: JumpForward, EndsBlock: true, Stack: "--"},
	CallFunctionEx:           {Name: "CALL_FUNCTION_EX", Argument: ArgumentNumber, rule: callFunctionExEffect, Stack: "NULL, callable, arguments, keywords if arg&1 -- result"},
	ExtendedArg:              {Name: "EXTENDED_ARG", Argument: ArgumentNumber, Stack: ""},
	ListAppend:               {Name: "LIST_APPEND", Argument: ArgumentNumber, effect: -1, Stack: "list, …, value -- list, …"},
	SetAdd:                   {Name: "SET_ADD", Argument: ArgumentNumber, effect: -1, Stack: "set, …, value -- set, …"},
	MapAdd:                   {Name: "MAP_ADD", Argument: ArgumentNumber, effect: -2, Stack: "dict, …, key, value -- dict, …"},
	LoadClassderef:           {Name: "LOAD_CLASSDEREF", Argument: ArgumentVariable, effect: 1, Stack: "-- value"},
	CopyFreeVars:             {Name: "COPY_FREE_VARS", Argument: ArgumentNumber, Stack: "--"},
	Resume:                   {Name: "RESUME", Argument: ArgumentNumber, Stack: "--"},
	MatchClass:               {Name: "MATCH_CLASS", Argument: ArgumentNumber, effect: -2, Stack: "subject, class, names -- attributes or None"},
	FormatValue:              {Name: "FORMAT_VALUE", Argument: ArgumentConversion, rule: formatValueEffect, Stack: "value, specification if arg&4 -- str"},
	BuildConstKeyMap:         {Name: "BUILD_CONST_KEY_MAP", Argument: ArgumentNumber, perArgument: -1, Stack: "arg values, tuple of keys -- dict"},
	BuildString:              {Name: "BUILD_STRING", Argument: ArgumentNumber, effect: 1, perArgument: -1, Stack: "arg strs -- str"},
	LoadMethod:               {Name: "LOAD_METHOD", Caches: 10, Argument: ArgumentName, effect: 1, Stack: "object -- method, self; or NULL, attribute"},
	ListExtend:               {Name: "LIST_EXTEND", Argument: ArgumentNumber, effect: -1, Stack: "list, …, iterable -- list, …"},
	SetUpdate:                {Name: "SET_UPDATE", Argument: ArgumentNumber, effect: -1, Stack: "set, …, iterable -- set, …"},
	DictMerge:                {Name: "DICT_MERGE", Argument: ArgumentNumber, effect: -1, Stack: "dict, …, mapping -- dict, …"},
	DictUpdate:               {Name: "DICT_UPDATE", Argument: ArgumentNumber, effect: -1, Stack: "dict, …, mapping -- dict, …"},
	Precall:                  {Name: "PRECALL", Caches: 1, Argument: ArgumentNumber, perArgument: -1, Stack: "method or NULL, callable or self, arg arguments -- the same; counted as taking the arguments"},
	Call:                     {Name: "CALL", Caches: 4, Argument: ArgumentNumber, effect: -1, Stack: "method or NULL, callable or self -- result; above them stood arg arguments, which PRECALL has counted"},
	KwNames:                  {Name: "KW_NAMES", Argument: ArgumentKeywordNames, Stack: "--"},
	PopJumpBackwardIfNotNone: {Name: "POP_JUMP_BACKWARD_IF_NOT_NONE", Argument: ArgumentJump, Jump: BackwardJump, opposite: PopJumpForwardIfNotNone, effect: -1, jumpEffect: -1, Stack: "value --"},
	PopJumpBackwardIfNone:    {Name: "POP_JUMP_BACKWARD_IF_NONE", Argument: ArgumentJump, Jump: BackwardJump, opposite: PopJumpForwardIfNone, effect: -1, jumpEffect: -1, Stack: "value --"},
	PopJumpBackwardIfFalse:   {Name: "POP_JUMP_BACKWARD_IF_FALSE", Argument: ArgumentJump, Jump: BackwardJump, opposite: PopJumpForwardIfFalse, effect: -1, jumpEffect: -1, Stack: "value --"},
	PopJumpBackwardIfTrue:    {Name: "POP_JUMP_BACKWARD_IF_TRUE", Argument: ArgumentJump, Jump: BackwardJump, opposite: PopJumpForwardIfTrue, effect: -1, jumpEffect: -1, Stack: "value --"},
}
