// Registration of existing regions: Reregister, RegisterShared, FastRegister.

package memory

import "fmt"

// usable returns an error if r can't be changed. It needs mu.
func (t *Table) usable(r *Region) error {
	switch {
	case r == nil || r.table != t:
		return fmt.Errorf("%w: not of this RNIC", ErrRegion)
	case t.closed:
		return ErrClosed
	case r.gone:
		return fmt.Errorf("%w: %v is deallocated", ErrRegion, r.STag())
	}
	return nil
}

// Reregister replaces the registration of a region (RI-Reregister Non-Shared Memory
// Region, Verbs §7.3.2.3). The index stays, everything else is as in cfg. It returns when
// no octet moves through the old registration any more; the caller must not hold the
// region.
//
// It fails with ErrRegion for a region that is Shared or deallocated, with ErrWindows and
// with ErrClosed, having changed nothing. Any other error is one of Register, and then
// the region is deallocated.
func (t *Table) Reregister(r *Region, pd *PD, buf []byte, cfg RegionConfig) error {
	g := new(registration)
	bad := t.describe(g, buf, &cfg)
	for {
		was, err := t.reregister(r, pd, g, &cfg, bad)
		if was == nil {
			if err != nil {
				return fmt.Errorf("memory: reregister: %w", err)
			}
			return nil
		}
		// Another goroutine may register it meanwhile; then that one is replaced, too.
		was.await()
	}
}

// reregister is Reregister without waiting: if was is not nil, wait for its holders and
// try again.
func (t *Table) reregister(r *Region, pd *PD, g *registration, cfg *RegionConfig, bad error) (was *registration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch err := t.usable(r); {
	case err != nil:
		return nil, err
	case r.shared:
		return nil, fmt.Errorf("%w: %v is Shared", ErrRegion, r.STag())
	case r.windows > 0:
		return nil, fmt.Errorf("%w: %d to %v", ErrWindows, r.windows, r.STag())
	}
	if was = t.end(&r.object); was.held() {
		return was, nil
	}
	if bad == nil {
		bad = t.checkPD(pd)
	}
	if bad == nil {
		bad = t.checkBytes(g.length)
	}
	if bad != nil {
		t.drop(&r.object)
		return nil, bad
	}
	was.pd.regions--
	pd.regions++
	g.pd, g.stag = pd, makeSTag(r.index, cfg.Key)
	r.remote, r.shared, r.entries = cfg.remote(), cfg.Shared, max(r.entries, cfg.entries())
	t.start(&r.object, g)
	return nil, nil
}

// RegisterShared registers the memory of an existing region again, with an STag, domain,
// addressing and rights of its own (Register Shared Memory Region, Verbs §7.3.2.4).
// existing is the region's whole STag. The new region is Shared, and the existing one
// becomes Shared and does not change otherwise. cfg.List and cfg.Shared are ignored.
//
// It fails with ErrRegion if existing is not the STag of a Valid region, and with
// ErrVA, ErrAccess, ErrPD, ErrRegionLimit, ErrByteLimit or ErrClosed; a failure
// changes nothing.
func (t *Table) RegisterShared(existing STag, pd *PD, cfg RegionConfig) (*Region, error) {
	var r *Region
	probed, err := t.probeShared(existing, cfg.Access)
	if err == nil {
		r, err = t.registerShared(existing, pd, &cfg, probed)
	}
	if err != nil {
		return nil, fmt.Errorf("memory: register shared: %w", err)
	}
	return r, nil
}

// registerShared is RegisterShared after probing, if that is configured.
func (t *Table) registerShared(existing STag, pd *PD, cfg *RegionConfig, probed *registration) (*Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	o := t.dir.lookup(existing.Index())
	if o == nil || o.region == nil {
		return nil, fmt.Errorf("%w: no region has STag %v", ErrRegion, existing)
	}
	was := o.current.Load()
	if was.stag != existing || was.revoked() || t.cfg.ProbePages && was != probed {
		return nil, fmt.Errorf("%w: %v is not Valid, or has another key", ErrRegion, existing)
	}
	if err := checkAccess(cfg.Access, cfg.RemoteAccess != RemoteForbidden); err != nil {
		return nil, err
	}
	r := &Region{remote: cfg.remote(), shared: true, entries: o.region.entries}
	err := r.first.address(was.extent, cfg)
	if err == nil {
		err = t.checkRoom(pd, &r.first)
	}
	if err != nil {
		return nil, err
	}
	if err := t.addRegion(r, pd, &r.first); err != nil {
		return nil, err
	}
	o.region.shared = true
	return r, nil
}

// FastRegister makes an Invalid region Valid for a stream of pd (Verbs §7.3.2.5): the one
// with stag's index, with stag's key. Of cfg it uses List, or else buf, Access, VA and
// ZeroBased. It waits for the holders of the region's last registration, which has been
// revoked; the caller must not hold it.
//
// It fails with ErrRegion if the index is not that of a Non-Shared region, ErrPD if
// the region is of another domain or stream, ErrNotInvalid, ErrListLength if the list
// is longer than the region's, with ErrAccess, ErrLength, ErrVA, ErrVA and ErrWrap
// both, ErrFBO, ErrBufferSize, ErrBufferEntry or ErrByteLimit; a failure changes
// nothing.
func (t *Table) FastRegister(pd *PD, stream Stream, stag STag, buf []byte, cfg RegionConfig) error {
	cfg.Key, cfg.RemoteAccess = stag.Key(), RemoteAllowed
	g := new(registration)
	bad := t.describe(g, buf, &cfg)
	for {
		was, err := t.fastRegister(pd, stream, stag.Index(), g, &cfg, bad)
		if was == nil {
			if err != nil {
				return fmt.Errorf("memory: fast-register STag %v: %w", stag, err)
			}
			return nil
		}
		was.await()
	}
}

// fastRegister is FastRegister without waiting: if was is not nil, wait for its holders
// and try again.
func (t *Table) fastRegister(pd *PD, stream Stream, index uint32, g *registration, cfg *RegionConfig, bad error) (was *registration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.dir.lookup(index)
	if o == nil || o.region == nil || o.region.shared {
		return nil, fmt.Errorf("%w: no Non-Shared region has it", ErrRegion)
	}
	r := o.region
	was = o.current.Load()
	switch {
	case was.pd != pd, was.stream != 0 && was.stream != stream:
		return nil, ErrPD
	case !was.revoked():
		return nil, ErrNotInvalid
	case cfg.entries() > r.entries:
		return nil, fmt.Errorf("%w: %d entries, the region has %d", ErrListLength, cfg.entries(), r.entries)
	case bad != nil:
		return nil, bad
	}
	if err := checkAccess(cfg.Access, r.remote); err != nil {
		return nil, err
	}
	if err := t.checkBytes(g.length); err != nil {
		return nil, err
	}
	if was.held() {
		return was, nil
	}
	g.pd, g.stream, g.stag = pd, was.stream, makeSTag(index, cfg.Key)
	t.start(o, g)
	return nil, nil
}
