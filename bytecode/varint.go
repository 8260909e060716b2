package bytecode

// appendSignedVarint writes the variable-length integers of the location table: six bits a byte, least significant
// first, 0x40 marking that more follow; the sign is the lowest bit.
func appendSignedVarint(out []byte, value int) []byte {
	if value < 0 {
		return appendVarint(out, uint(-value)<<1|1)
	}
	return appendVarint(out, uint(value)<<1)
}

func appendVarint(out []byte, value uint) []byte {
	for ; value >= 64; value >>= 6 {
		out = append(out, byte(value&63)|64)
	}
	return append(out, byte(value))
}
