// This file says how long the result of an operation of NFS version 4 can become.

package binding

import (
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// A need goes through the arguments of an operation and says how long its result
// can become behind the status, in octets: what a server returns for them, and
// for each eligible item in it the most octets of its data, -1 if there is none.
type need func(c *payload.Cursor) (octets uint64, item int64)

const noItem = -1

// The most octets of parts of results for which the protocol has no limit, or one far
// above what servers return. They are generous. If a reply is longer, its server fails it
// for lack of room (RFC 8267 §3).
const (
	maxBitmap4     = 4 + 8*4                                                // attributes to number 255
	maxNetaddr4    = 4 + 8 + 4 + 128                                        // netid and universal address
	maxNetlocs4    = 12 + 16 + 4 + 8*(4+4+opaqueLimit4)                     // of COPY_NOTIFY: some addresses of a server
	maxDenied4     = 8 + 8 + 4 + 8 + 4 + opaqueLimit4                       // LOCK4denied
	maxNfsace4     = 12 + 4 + opaqueLimit4                                  // nfsace4
	maxDelegation4 = 4 + 16 + 4 + 12 + maxNfsace4                           // open_delegation4
	maxOpen4       = 16 + 20 + 4 + maxBitmap4 + maxDelegation4              // OPEN4resok
	maxSecinfo4    = 4 + 16*(4+4+64+8)                                      // that many flavors
	maxImplID4     = 4 + 4 + opaqueLimit4 + 4 + opaqueLimit4 + 12           // eir_server_impl_id
	maxProtect4    = 4 + 2*maxBitmap4 + 16 + 4 + 16*(4+64)                  // state_protect4_r, with some handles
	maxExchangeID4 = 16 + maxProtect4 + 8 + 2*(4+opaqueLimit4) + maxImplID4 // EXCHANGE_ID4resok

	maxPath4  = 4096     // a symbolic link, as Linux and others have it
	maxXattr4 = 64 << 10 // the value of an extended attribute
	maxACL4   = 64 << 10 // any attribute without a limit: access control lists, locations
	maxName4  = 512      // of an owner or group

	lastAttribute4 = 86 // the highest that is known here
)

// needAttributes is of a fattr4 with the attributes that a bitmap asks for.
func needAttributes(c *payload.Cursor) (uint64, int64) {
	n := uint64(maxBitmap4 + 4)
	for i := range c.Count(unlimited, 4) {
		bits := c.Uint32()
		for bit := range 32 {
			if bits>>bit&1 == 1 {
				n += maxAttribute(uint32(32*i + bit))
			}
		}
	}
	return n, noItem
}

// maxAttribute is the most octets of the attribute with the number.
func maxAttribute(number uint32) uint64 {
	switch number {
	case 0, 75: // supported_attrs, suppattr_exclcreat
		return maxBitmap4
	case 86: // open_arguments (RFC 9754)
		return 5 * maxBitmap4
	case 19: // filehandle
		return 4 + fhSize4
	case 32, 36, 37, 62, 64: // mimetype, owner, owner_group, fs_layout_types, layout_types
		return 4 + maxName4
	case 12, 24, 58, 59, 61, 63, 67, 68, 80: // acl, fs_locations, dacl, sacl, fs_status, layout_hint, fs_locations_info, mdsthreshold, sec_label
		return maxACL4
	}
	if number > lastAttribute4 {
		return maxACL4 // not known here
	}
	return 24 // the longest of the others: retention_get4, with a time in it
}

// needRead: the data are an item of as many octets as are asked for.
func needRead(c *payload.Cursor) (uint64, int64) {
	c.Skip(16 + 8) // stateid, offset
	return 0, int64(c.Uint32())
}

func needReadlink(*payload.Cursor) (uint64, int64) { return 0, maxPath4 }

// needReaddir: maxcount is of the READDIR4resok (RFC 7530 §16.24.4).
func needReaddir(c *payload.Cursor) (uint64, int64) {
	c.Skip(8 + 8 + 4) // cookie, cookieverf, dircount
	n := uint64(c.Uint32())
	bitmap(c)
	return n, noItem
}

// needDeviceInfo: gdia_maxcount is of the GETDEVICEINFO4resok (RFC 8881 §18.40.3).
func needDeviceInfo(c *payload.Cursor) (uint64, int64) {
	c.Skip(16 + 4) // gdia_device_id, gdia_layout_type
	n := uint64(c.Uint32())
	bitmap(c)
	return n + maxBitmap4, noItem
}

func needDevices(c *payload.Cursor) (uint64, int64) {
	c.Skip(4)
	n := uint64(c.Uint32()) // gdla_maxdevices
	c.Skip(16)
	return 8 + 8 + 4 + 16*n + 4, noItem
}

// needLayout: loga_maxcount is of the LAYOUTGET4resok (RFC 8881 §18.43.3).
func needLayout(c *payload.Cursor) (uint64, int64) {
	c.Skip(12 + 24 + 16)
	return uint64(c.Uint32()), noItem
}

func needStateids(c *payload.Cursor) (uint64, int64) {
	n := c.Count(unlimited, 16)
	c.Skip(16 * n)
	return 4 + 4*uint64(n), noItem
}

// needReadPlus: as many octets as are requested, in segments that each have an offset. At
// most there is one for each octet, in practice one for many pages.
func needReadPlus(c *payload.Cursor) (uint64, int64) {
	c.Skip(16 + 8) // stateid, offset
	n := uint64(c.Uint32())
	return 8 + n + 4096 + n/4096*20, noItem
}

// needXattrs: lxa_maxcount is of the LISTXATTRS4resok (RFC 8276 §8.4.3.2).
func needXattrs(c *payload.Cursor) (uint64, int64) {
	c.Skip(8) // lxa_cookie
	return uint64(c.Uint32()), noItem
}
