# A server of RPC with TLS by hand, on OpenSSL, in front of a plain one:
# starttls.py LISTEN-PORT CERT KEY CA HOST PORT. It requires certificates, and takes nothing in the clear but the probe.
import socket, ssl, struct, sys, threading

listen, cert, key, ca, host, port = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5], int(sys.argv[6])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.load_cert_chain(cert, key)
context.load_verify_locations(ca)
context.verify_mode = ssl.CERT_REQUIRED
context.set_alpn_protocols(["sunrpc"])


def serve(s):
    probe = s.recv(44, socket.MSG_WAITALL)
    xid, kind, vers, _, _, proc, flavor, body, verifier, length = struct.unpack(">10I", probe[4:])
    assert (kind, vers, proc, flavor, body, verifier, length) == (0, 2, 0, 7, 0, 0, 0), probe.hex()
    reply = struct.pack(">5I", xid, 1, 0, 0, 8) + b"STARTTLS" + struct.pack(">I", 1)  # PROG_UNAVAIL: the client goes on
    s.sendall(struct.pack(">I", 1 << 31 | len(reply)) + reply)
    t = context.wrap_socket(s, server_side=True)
    assert t.version() == "TLSv1.3" and t.selected_alpn_protocol() == "sunrpc" and t.getpeercert()
    print("secured", flush=True)
    behind = socket.create_connection((host, port))
    t.settimeout(0.01)
    behind.settimeout(0.01)
    while True:
        for a, b in ((t, behind), (behind, t)):
            try:
                data = a.recv(1 << 20)
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            if not data:
                return
            b.settimeout(None)
            b.sendall(data)
            b.settimeout(0.01)


def run(s):
    try:
        serve(s)
    except Exception as e:
        print("failed:", e, flush=True)
    s.close()


ln = socket.create_server(("127.0.0.1", listen))
print("listening on", ln.getsockname()[1], flush=True)
while True:
    threading.Thread(target=run, args=(ln.accept()[0],), daemon=True).start()
