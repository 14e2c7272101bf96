package payload

// What tests from outside of the package hold it against.
const (
	InPlace      = inPlace
	MaxStream    = maxStream
	MinReply     = minReply
	SendSegments = sendSegments
)

// Rounded returns n octets with their roundup.
func Rounded(n int) uint64 { return rounded(n) }
