package wire

import "testing"

// FuzzConversations throws octets at both directions: whatever a capture
// holds, reading it ends, and says something when it is not iWARP.
func FuzzConversations(f *testing.F) {
	f.Add([]byte(requestKey+"\x50\x02\x00\x04\x00\x04\x00\x04"), []byte(replyKey+"\x50\x02\x00\x04\x00\x04\x00\x04"), framed(octets(sendMSN1)), framed(octets(terminate)))
	f.Add([]byte(requestKey+"\x40\x01\x00\x00"), []byte(replyKey+"\xc0\x01\x00\x00"), markedStream(), framed(octets(readResp)))
	f.Add([]byte(requestKey+"\x10\x02\x00\x04\x80\x04\xc0\x04"), []byte(replyKey+"\x10\x02\x00\x04\x80\x04\x80\x04"), framed(octets(fetchAdd)), framed(octets(atomicResp)))
	f.Fuzz(func(t *testing.T, request, reply, forth, back []byte) {
		var s script
		s.packet(FromInitiator, request)
		s.packet(FromResponder, reply)
		s.packet(FromInitiator, forth)
		s.packet(FromResponder, back)
		for _, c := range Conversations(s.packets) {
			if c.Reply == nil && len(c.Findings) == 0 && len(c.Flows[FromResponder].Octets) > 0 {
				t.Error("the reply was not read and nothing was said about it")
			}
		}
	})
}
