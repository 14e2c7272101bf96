// The responder: Reads and atomics of the peer are answered without the ULP.

package rdmap

// startAnswer starts the response to the peer's oldest request. Requests are
// served one after the other in the order of their arrival, Reads and atomics
// alike, which keeps every row of RFC 5040 appendix B and RFC 7306 §7.
func (o *outbound) startAnswer() bool {
	s, m := o.s, &o.msg
	if s.term.Load() != nil || !s.requests.front(&m.req) {
		return false
	}
	m.kind, m.body = kindAnswer, nil
	return services[m.req.opcode].answer(o, &m.req)
}

// unanswered ends the stream because of a request that cannot be answered. The ULP
// is called first, so that it can raise an event. Terminate is called in any case, so
// that the request is not tried again.
func (o *outbound) unanswered(err error) {
	o.s.ulp.Unanswered(err)
	o.s.Terminate(err)
}
