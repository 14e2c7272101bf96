// This file is the table of the operations of NFS version 4: RFC 7530 (4.0), RFC
// 8881 (4.1), RFC 7862 (4.2) and RFC 8276 (extended attributes), with arguments
// and results as in the XDR of RFC 7863. An operation has the same layout in all
// minor versions that have it.

package binding

// An op4 is one operation as it stands in a COMPOUND, behind its number.
type op4 struct {
	args layout // nil is void
	ok   layout // behind the status, which every result begins with, if that is NFS4_OK; nil is void

	errs map[uint32]layout // the same with other statuses, if there is anything
	all  layout            // the same with every status: SETATTR
	max  int               // octets of what follows the status at most, but for eligible items
	need need              // more octets, by the arguments; in place of args when a reply is to be estimated
}

// ops4 are the operations by number (nfs_opnum4).
var ops4 = map[uint32]*op4{
	3:  {args: word, ok: fixed(8), max: 8},                                                // ACCESS: supported, access
	4:  {args: members(word, stateid), ok: stateid, max: 16},                              // CLOSE: seqid, open_stateid
	5:  {args: members(hyper, word), ok: verifier, max: 8},                                // COMMIT: offset, count; writeverf
	6:  {args: createArgs, ok: members(changeInfo, bitmap), max: 20 + maxBitmap4},         // CREATE: cinfo, attrset
	7:  {args: hyper},                                                                     // DELEGPURGE: clientid
	8:  {args: stateid},                                                                   // DELEGRETURN: deleg_stateid
	9:  {args: bitmap, ok: fattr, need: needAttributes},                                   // GETATTR: attr_request; obj_attributes
	10: {ok: fh, max: 4 + fhSize4},                                                        // GETFH: object
	11: {args: component, ok: changeInfo, max: 20},                                        // LINK: newname; cinfo
	12: {args: lockArgs, ok: stateid, errs: denied, max: maxDenied4},                      // LOCK: lock_stateid
	13: {args: members(word, hyper, hyper, owner), errs: denied, max: maxDenied4},         // LOCKT: locktype, offset, length, owner
	14: {args: members(word, word, stateid, hyper, hyper), ok: stateid, max: 16},          // LOCKU: locktype, seqid, lock_stateid, offset, length
	15: {args: component},                                                                 // LOOKUP: objname
	16: {},                                                                                // LOOKUPP
	17: {args: fattr},                                                                     // NVERIFY: obj_attributes
	18: {args: openArgs, ok: openOK, max: maxOpen4},                                       // OPEN
	19: {args: word},                                                                      // OPENATTR: createdir
	20: {args: members(stateid, word), ok: stateid, max: 16},                              // OPEN_CONFIRM: open_stateid, seqid
	21: {args: members(stateid, fixed(12)), ok: stateid, max: 16},                         // OPEN_DOWNGRADE: open_stateid, seqid, share_access, share_deny
	22: {args: fh},                                                                        // PUTFH: object
	23: {},                                                                                // PUTPUBFH
	24: {},                                                                                // PUTROOTFH
	25: {args: members(stateid, hyper, word), ok: readOK, max: 8, need: needRead},         // READ: stateid, offset, count
	26: {args: readdirArgs, ok: readdirOK, need: needReaddir},                             // READDIR
	27: {ok: eligible, max: 4, need: needReadlink},                                        // READLINK: link
	28: {args: component, ok: changeInfo, max: 20},                                        // REMOVE: target; cinfo
	29: {args: members(component, component), ok: fixed(40), max: 40},                     // RENAME: oldname, newname; source_cinfo, target_cinfo
	30: {args: hyper},                                                                     // RENEW: clientid
	31: {},                                                                                // RESTOREFH
	32: {},                                                                                // SAVEFH
	33: {args: component, ok: secinfoOK, max: maxSecinfo4},                                // SECINFO: name
	34: {args: members(stateid, fattr), all: bitmap, max: maxBitmap4},                     // SETATTR: stateid, obj_attributes; attrsset
	35: {args: setclientidArgs, ok: fixed(16), errs: inUse, max: maxNetaddr4},             // SETCLIENTID: clientid, setclientid_confirm
	36: {args: members(hyper, verifier)},                                                  // SETCLIENTID_CONFIRM: clientid, setclientid_confirm
	37: {args: fattr},                                                                     // VERIFY: obj_attributes
	38: {args: writeArgs, ok: members(word, word, verifier), max: 16},                     // WRITE: count, committed, writeverf
	39: {args: owner},                                                                     // RELEASE_LOCKOWNER: lock_owner
	40: {args: members(word, array(unlimited, callbackSecParms))},                         // BACKCHANNEL_CTL: bca_cb_program, bca_sec_parms
	41: {args: members(sessionid, word, word), ok: fixed(24), max: 24},                    // BIND_CONN_TO_SESSION: sessid, dir, use_conn_in_rdma_mode
	42: {args: exchangeIDArgs, ok: exchangeIDOK, max: maxExchangeID4},                     // EXCHANGE_ID
	43: {args: createSessionArgs, ok: createSessionOK, max: 88},                           // CREATE_SESSION
	44: {args: sessionid},                                                                 // DESTROY_SESSION: dsa_sessionid
	45: {args: stateid},                                                                   // FREE_STATEID: fsa_stateid
	46: {args: dirDelegationArgs, ok: dirDelegationOK, max: 28 + 3*maxBitmap4},            // GET_DIR_DELEGATION
	47: {args: deviceInfoArgs, ok: deviceInfoOK, errs: tooSmall, need: needDeviceInfo},    // GETDEVICEINFO
	48: {args: members(word, word, hyper, verifier), ok: devicesOK, need: needDevices},    // GETDEVICELIST: layout_type, maxdevices, cookie, cookieverf
	49: {args: layoutCommitArgs, ok: when(hyper), max: 12},                                // LAYOUTCOMMIT: locr_newsize
	50: {args: layoutGetArgs, ok: layoutGetOK, errs: tryLater, need: needLayout},          // LAYOUTGET
	51: {args: layoutReturnArgs, ok: when(stateid), max: 20},                              // LAYOUTRETURN: lorr_stateid
	52: {args: word, ok: secinfoOK, max: maxSecinfo4},                                     // SECINFO_NO_NAME: secinfo_style4
	53: {args: members(sessionid, fixed(16)), ok: members(sessionid, fixed(20)), max: 36}, // SEQUENCE
	54: {args: members(component, component), ok: component, max: 4 + opaqueLimit4},       // SET_SSV: ssa_ssv, ssa_digest; ssr_digest
	55: {args: words(unlimited, 16), ok: words(unlimited, 4), need: needStateids},         // TEST_STATEID: ts_stateids; tsr_status_codes
	56: {args: wantArgs, ok: openDelegation, max: maxDelegation4},                         // WANT_DELEGATION
	57: {args: hyper},                                                                     // DESTROY_CLIENTID: dca_clientid
	58: {args: word},                                                                      // RECLAIM_COMPLETE: rca_one_fs
	59: {args: members(stateid, hyper, hyper)},                                            // ALLOCATE: stateid, offset, length
	60: {args: copyArgs, ok: members(writeResponse, fixed(8)), errs: noReqs, max: 48},     // COPY: cr_response, cr_requirements
	61: {args: members(stateid, netloc), ok: copyNotifyOK, max: maxNetlocs4},              // COPY_NOTIFY: cna_src_stateid, cna_destination_server
	62: {args: members(stateid, hyper, hyper)},                                            // DEALLOCATE: stateid, offset, length
	63: {args: members(stateid, hyper, hyper, bitmap), ok: bitmap, max: maxBitmap4},       // IO_ADVISE: stateid, offset, count, hints; hints
	64: {args: members(hyper, hyper, stateid, words(unlimited, 24))},                      // LAYOUTERROR: offset, length, stateid, errors
	65: {args: layoutStatsArgs},                                                           // LAYOUTSTATS
	66: {args: stateid},                                                                   // OFFLOAD_CANCEL: oca_stateid
	67: {args: stateid, ok: members(hyper, words(1, 4)), max: 16},                         // OFFLOAD_STATUS: osr_count, osr_complete
	68: {args: members(stateid, hyper, word), ok: readPlusOK, need: needReadPlus},         // READ_PLUS: stateid, offset, count
	69: {args: members(stateid, hyper, word), ok: fixed(12), max: 12},                     // SEEK: stateid, offset, what; eof, offset
	70: {args: writeSameArgs, ok: writeResponse, max: 40},                                 // WRITE_SAME
	71: {args: members(stateid, stateid, hyper, hyper, hyper)},                            // CLONE: stateids, offsets, count
	72: {args: component, ok: opaque(unlimited), max: 4 + maxXattr4},                      // GETXATTR: gxa_name; gxr_value
	73: {args: members(word, component, component), ok: changeInfo, max: 20},              // SETXATTR: option, key, value; cinfo
	74: {args: members(hyper, word), ok: listXattrsOK, need: needXattrs},                  // LISTXATTRS: lxa_cookie, lxa_maxcount
	75: {args: component, ok: changeInfo, max: 20},                                        // REMOVEXATTR: rxa_name; cinfo

	10044: {}, // ILLEGAL
}

// Results that have something besides their status with one that is an error.
var (
	denied   = arms{nfs4ErrDenied: lockDenied}      // LOCK, LOCKT
	inUse    = arms{nfs4ErrClidInUse: netaddr}      // SETCLIENTID: client_using
	tooSmall = arms{nfs4ErrTooSmall: word}          // GETDEVICEINFO: gdir_mincount
	tryLater = arms{nfs4ErrTryLater: word}          // LAYOUTGET: logr_will_signal_layout_avail
	noReqs   = arms{nfs4ErrOffloadNoReqs: fixed(8)} // COPY: cr_requirements
)

// CREATE4args: objtype, objname, createattrs.
var createArgs = members(
	union(arms{ // createtype4
		3: fixed(8), // NF4BLK: devdata
		4: fixed(8), // NF4CHR: devdata
		5: eligible, // NF4LNK: linkdata
	}, void),
	component, fattr)

// WRITE4args: stateid, offset, stable, data.
var writeArgs = members(stateid, hyper, word, eligible)

// READ4resok: eof, data.
var readOK = members(word, eligible)

// LOCK4args: locktype, reclaim, offset, length, locker.
var lockArgs = members(word, word, hyper, hyper,
	union(arms{ // locker4
		0: members(stateid, word),              // exist_lock_owner4: lock_stateid, lock_seqid
		1: members(word, stateid, word, owner), // open_to_lock_owner4: open_seqid, open_stateid, lock_seqid, lock_owner
	}, nil))

// OPEN4args: seqid, share_access, share_deny, owner, openhow, claim.
var openArgs = members(word, word, word, owner,
	union(arms{ // openflag4
		1: union(arms{ // OPEN4_CREATE: createhow4
			0: fattr,                    // UNCHECKED4
			1: fattr,                    // GUARDED4
			2: verifier,                 // EXCLUSIVE4
			3: members(verifier, fattr), // EXCLUSIVE4_1: creatverfattr
		}, nil),
	}, void),
	union(arms{ // open_claim4
		0: component,                   // CLAIM_NULL
		1: word,                        // CLAIM_PREVIOUS: delegate_type
		2: members(stateid, component), // CLAIM_DELEGATE_CUR
		3: component,                   // CLAIM_DELEGATE_PREV
		4: void,                        // CLAIM_FH
		5: stateid,                     // CLAIM_DELEG_CUR_FH
		6: void,                        // CLAIM_DELEG_PREV_FH
	}, nil))

// OPEN4resok: stateid, cinfo, rflags, attrset, delegation.
var openOK = members(stateid, changeInfo, word, bitmap, openDelegation)

// READDIR4args: cookie, cookieverf, dircount, maxcount, attr_request.
var readdirArgs = members(hyper, verifier, word, word, bitmap)

// READDIR4resok: cookieverf, entries, eof.
var readdirOK = members(verifier, chain(members(hyper, component, fattr)), word)

// SECINFO4resok: by flavor, of which only RPCSEC_GSS has more: oid, qop, service.
var secinfoOK = array(unlimited, union(arms{6: members(secOID, word, word)}, void))

// SETCLIENTID4args: client (verifier, id), callback (cb_program, cb_location),
// callback_ident (RFC 7530 §16.33).
var setclientidArgs = members(verifier, opaque(opaqueLimit4), word, netaddr, word)

// EXCHANGE_ID4args: eia_clientowner, eia_flags, eia_state_protect,
// eia_client_impl_id.
var exchangeIDArgs = members(verifier, opaque(opaqueLimit4), word,
	union(arms{ // state_protect4_a
		0: void,                                                                                     // SP4_NONE
		1: stateProtectOps,                                                                          // SP4_MACH_CRED
		2: members(stateProtectOps, array(unlimited, secOID), array(unlimited, secOID), word, word), // SP4_SSV
	}, nil),
	array(1, implID))

// EXCHANGE_ID4resok: eir_clientid, eir_sequenceid, eir_flags,
// eir_state_protect, eir_server_owner, eir_server_scope, eir_server_impl_id.
var exchangeIDOK = members(hyper, word, word,
	union(arms{ // state_protect4_r
		0: void,                                                             // SP4_NONE
		1: stateProtectOps,                                                  // SP4_MACH_CRED
		2: members(stateProtectOps, fixed(16), array(unlimited, gssHandle)), // SP4_SSV: spi_hash_alg to spi_window, spi_handles
	}, nil),
	hyper, opaque(opaqueLimit4), // server_owner4: so_minor_id, so_major_id
	opaque(opaqueLimit4), array(1, implID))

// CREATE_SESSION4args: csa_clientid, csa_sequence, csa_flags,
// csa_fore_chan_attrs, csa_back_chan_attrs, csa_cb_program, csa_sec_parms.
var createSessionArgs = members(hyper, word, word, channelAttrs, channelAttrs, word, array(unlimited, callbackSecParms))

// CREATE_SESSION4resok: csr_sessionid, csr_sequence, csr_flags,
// csr_fore_chan_attrs, csr_back_chan_attrs.
var createSessionOK = members(sessionid, word, word, channelAttrs, channelAttrs)

// GET_DIR_DELEGATION4args: gdda_signal_deleg_avail, gdda_notification_types,
// gdda_child_attr_delay, gdda_dir_attr_delay, gdda_child_attributes,
// gdda_dir_attributes.
var dirDelegationArgs = members(word, bitmap, nfstime, nfstime, bitmap, bitmap)

// GET_DIR_DELEGATION4res_non_fatal.
var dirDelegationOK = union(arms{
	0: members(verifier, stateid, bitmap, bitmap, bitmap), // GDD4_OK
	1: word,                                               // GDD4_UNAVAIL: gddrnf_will_signal_deleg_avail
}, nil)

// GETDEVICEINFO4args: gdia_device_id, gdia_layout_type, gdia_maxcount,
// gdia_notify_types.
var deviceInfoArgs = members(deviceid, word, word, bitmap)

// GETDEVICEINFO4resok: gdir_device_addr, gdir_notification.
var deviceInfoOK = members(layoutContent, bitmap)

// GETDEVICELIST4resok: gdlr_cookie, gdlr_cookieverf, gdlr_deviceid_list,
// gdlr_eof.
var devicesOK = members(hyper, verifier, words(unlimited, 16), word)

// LAYOUTCOMMIT4args: loca_offset, loca_length, loca_reclaim, loca_stateid,
// loca_last_write_offset, loca_time_modify, loca_layoutupdate.
var layoutCommitArgs = members(hyper, hyper, word, stateid, when(hyper), when(nfstime), layoutContent)

// LAYOUTGET4args: loga_signal_layout_avail, loga_layout_type, loga_iomode,
// loga_offset, loga_length, loga_minlength, loga_stateid, loga_maxcount.
var layoutGetArgs = members(fixed(12), fixed(24), stateid, word)

// LAYOUTGET4resok: logr_return_on_close, logr_stateid, logr_layout (lo_offset,
// lo_length, lo_iomode, lo_content).
var layoutGetOK = members(word, stateid, array(unlimited, members(hyper, hyper, word, layoutContent)))

// LAYOUTRETURN4args: lora_reclaim, lora_layout_type, lora_iomode,
// lora_layoutreturn.
var layoutReturnArgs = members(fixed(12),
	union(arms{1: members(hyper, hyper, stateid, opaque(unlimited))}, void)) // LAYOUTRETURN4_FILE

// WANT_DELEGATION4args: wda_want, wda_claim.
var wantArgs = members(word,
	union(arms{
		1: word, // CLAIM_PREVIOUS: dc_delegate_type
		4: void, // CLAIM_FH
		6: void, // CLAIM_DELEG_PREV_FH
	}, nil))

// COPY4args: ca_src_stateid, ca_dst_stateid, ca_src_offset, ca_dst_offset,
// ca_count, ca_consecutive, ca_synchronous, ca_source_server.
var copyArgs = members(stateid, stateid, fixed(24), fixed(8), array(unlimited, netloc))

// COPY_NOTIFY4resok: cnr_lease_time, cnr_stateid, cnr_source_server.
var copyNotifyOK = members(nfstime, stateid, array(unlimited, netloc))

// LAYOUTSTATS4args: lsa_offset, lsa_length, lsa_stateid, lsa_read, lsa_write,
// lsa_deviceid, lsa_layoutupdate.
var layoutStatsArgs = members(hyper, hyper, stateid, fixed(16), fixed(16), deviceid, layoutContent)

// read_plus_res4: rpr_eof, rpr_contents. Its data are not eligible (RFC 8267
// §6.1 does not name them). An unknown kind of content is void, by the default
// arm.
var readPlusOK = members(word, array(unlimited,
	union(arms{
		0: members(hyper, opaque(unlimited)), // NFS4_CONTENT_DATA: d_offset, d_data
		1: fixed(16),                         // NFS4_CONTENT_HOLE: di_offset, di_length
	}, void)))

// WRITE_SAME4args: wsa_stateid, wsa_stable, wsa_adb (adb_offset to
// adb_reloff_pattern, adb_pattern). The pattern is not eligible.
var writeSameArgs = members(stateid, word, fixed(4*8+4+8), opaque(unlimited))

// LISTXATTRS4resok: lxr_cookie, lxr_names, lxr_eof.
var listXattrsOK = members(hyper, array(unlimited, component), word)
