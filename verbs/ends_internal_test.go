package verbs

import "testing"

// Peers choose the codes of their Terminate messages: only so many are told apart.
func TestReceivedCodesAreBounded(t *testing.T) {
	var e ends
	for code := range 256 {
		e.receive(TerminateCode{0, 2, uint8(code)})
	}
	e.receive(TerminateCode{0, 2, 1})
	if len(e.received) != mostCodes+1 || e.received[OtherTerminates] != 256-mostCodes || e.received[TerminateCode{0, 2, 1}] != 2 {
		t.Errorf("%d codes are told apart, %d are others", len(e.received), e.received[OtherTerminates])
	}
}
