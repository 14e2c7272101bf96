// This file holds the layouts of those types of NFS version 4 that several
// operations have in common, under the names of RFC 7863.

package binding

// Limits of NFS version 4 in octets (RFC 7863, "Sizes").
const (
	fhSize4      = 128  // NFS4_FHSIZE
	opaqueLimit4 = 1024 // NFS4_OPAQUE_LIMIT
)

// Status codes of NFS version 4 that results with more in them go by.
const (
	nfs4OK               = 0
	nfs4ErrTooSmall      = 10005 // NFS4ERR_TOOSMALL
	nfs4ErrDenied        = 10010 // NFS4ERR_DENIED
	nfs4ErrClidInUse     = 10017 // NFS4ERR_CLID_INUSE
	nfs4ErrTryLater      = 10058 // NFS4ERR_LAYOUTTRYLATER
	nfs4ErrOffloadNoReqs = 10094 // NFS4ERR_OFFLOAD_NO_REQS
)

var (
	word     = fixed(4) // uint32_t, int32_t, bool, an enumeration, or what is defined as one: count4, seqid4
	hyper    = fixed(8) // uint64_t, int64_t, or what is defined as one: offset4, length4, clientid4
	verifier = fixed(8) // verifier4

	stateid    = fixed(16) // stateid4: seqid, other
	sessionid  = fixed(16) // sessionid4
	deviceid   = fixed(16) // deviceid4
	nfstime    = fixed(12) // nfstime4: seconds, nseconds
	changeInfo = fixed(20) // change_info4: atomic, before, after

	fh        = opaque(fhSize4)             // nfs_fh4
	component = opaque(unlimited)           // component4, and any other utf8string
	bitmap    = words(unlimited, 4)         // bitmap4
	fattr     = members(bitmap, attributes) // fattr4: attrmask, attr_vals

	attributes = opaque(unlimited) // attrlist4

	owner = members(hyper, opaque(opaqueLimit4)) // state_owner4, open_owner4, lock_owner4: clientid, owner

	netaddr = members(opaque(unlimited), opaque(unlimited)) // netaddr4, clientaddr4: na_r_netid, na_r_addr

	netloc = union(arms{ // netloc4
		1: component, // NL4_NAME
		2: component, // NL4_URL
		3: netaddr,   // NL4_NETADDR
	}, nil)

	nfsace = members(word, word, word, component) // nfsace4: type, flag, access_mask, who

	lockDenied = members(hyper, hyper, word, owner) // LOCK4denied: offset, length, locktype, owner

	layoutContent = members(word, opaque(unlimited)) // layout_content4, layoutupdate4, device_addr4: type, body

	implID = members(component, component, nfstime) // nfs_impl_id4: nii_domain, nii_name, nii_date

	stateProtectOps = members(bitmap, bitmap) // state_protect_ops4: spo_must_enforce, spo_must_allow

	gssHandle = opaque(unlimited) // gsshandle4_t
	secOID    = opaque(unlimited) // sec_oid4

	channelAttrs = members(fixed(6*4), words(1, 4)) // channel_attrs4: ca_headerpadsize to ca_maxrequests, ca_rdma_ird

	writeResponse = members(words(1, 16), hyper, word, verifier) // write_response4: wr_callback_id, wr_count, wr_committed, wr_writeverf
)

// callbackSecParms is callback_sec_parms4, by the flavor of the credential.
var callbackSecParms = union(arms{
	0: void,                                                 // AUTH_NONE
	1: members(word, opaque(255), word, word, words(16, 4)), // AUTH_SYS: stamp, machinename, uid, gid, gids (RFC 5531 Appendix A)
	6: members(word, gssHandle, gssHandle),                  // RPCSEC_GSS: gcbp_service, the handles of server and client
}, nil)

// openDelegation is open_delegation4. What it grants on attributes besides came
// with RFC 9754.
var openDelegation = union(arms{
	0: void,            // OPEN_DELEGATE_NONE
	1: readDelegation,  // OPEN_DELEGATE_READ
	2: writeDelegation, // OPEN_DELEGATE_WRITE
	3: noDelegation,    // OPEN_DELEGATE_NONE_EXT
	4: readDelegation,  // OPEN_DELEGATE_READ_ATTRS_DELEG
	5: writeDelegation, // OPEN_DELEGATE_WRITE_ATTRS_DELEG
}, nil)

var (
	readDelegation  = members(stateid, word, nfsace)             // open_read_delegation4: stateid, recall, permissions
	writeDelegation = members(stateid, word, spaceLimit, nfsace) // open_write_delegation4

	spaceLimit = union(arms{ // nfs_space_limit4
		1: hyper,    // NFS_LIMIT_SIZE
		2: fixed(8), // NFS_LIMIT_BLOCKS: num_blocks, bytes_per_block
	}, nil)

	noDelegation = union(arms{ // open_none_delegation4
		1: word, // WND4_CONTENTION: ond_server_will_push_deleg
		2: word, // WND4_RESOURCE: ond_server_will_signal_avail
	}, void)
)
