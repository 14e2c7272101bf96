# A client of RPC with TLS by hand, on OpenSSL: authtls.py HOST PORT CA [CERT KEY]
# Each step prints a line; the last one is "done".
import socket, ssl, struct, sys

host, port, ca, pair = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:6]
NFS, MOUNT, TLS = 100003, 100005, 7


def call(xid, prog, proc, flavor=0, args=b""):
    message = struct.pack(">10I", xid, 0, 2, prog, 3, proc, flavor, 0, 0, 0) + args
    return struct.pack(">I", 1 << 31 | len(message)) + message


def exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def record(s):
    (mark,) = struct.unpack(">I", exactly(s, 4))
    assert mark >> 31, "a reply in several fragments"
    return exactly(s, mark & 0x7FFFFFFF)


def connect():
    return socket.create_connection((host, port), 10)


def agreed(s):
    s.sendall(call(1, NFS, 0, TLS))
    want = struct.pack(">5I", 1, 1, 0, 0, 8) + b"STARTTLS" + struct.pack(">I", 0)
    got = record(s)
    assert got == want, got.hex()


def context(version=ssl.TLSVersion.TLSv1_3, alpn=("sunrpc",), certificate=True):
    c = ssl.create_default_context(cafile=ca)
    c.minimum_version = ssl.TLSVersion.TLSv1_2
    c.maximum_version = version
    if alpn:
        c.set_alpn_protocols(alpn)
    if pair and certificate:
        c.load_cert_chain(*pair)
    return c


def denied(reply, xid, why):
    assert reply == struct.pack(">5I", xid, 1, 1, 1, why), reply.hex()


def silent(s):
    s.settimeout(10)
    try:
        data = s.recv(100)
    except ConnectionResetError:
        return
    assert data == b"", data.hex()


def refused(**changed):
    s = connect()
    agreed(s)
    try:
        t = context(**changed).wrap_socket(s, server_hostname=host)
        t.sendall(call(2, NFS, 0))
        record(t)  # with TLS 1.3 the refusal of a certificate comes here
    except (ssl.SSLError, EOFError, ConnectionResetError) as e:
        print("refused", changed, ":", e)
        return
    raise AssertionError("not refused: %r" % changed)


s = connect()
agreed(s)
with context().wrap_socket(s, server_hostname=host) as t:
    assert t.version() == "TLSv1.3" and t.selected_alpn_protocol() == "sunrpc", (t.version(), t.selected_alpn_protocol())
    t.sendall(call(2, NFS, 0))
    assert record(t) == struct.pack(">6I", 2, 1, 0, 0, 0, 0)
    t.sendall(call(3, MOUNT, 5))  # EXPORT
    reply = record(t)
    assert reply[:24] == struct.pack(">6I", 3, 1, 0, 0, 0, 0) and len(reply) > 28, reply.hex()
    t.sendall(call(4, NFS, 0, TLS))  # a probe within TLS
    denied(record(t), 4, 1)
    t.sendall(call(5, NFS, 0)[:20])
    t.sendall(call(5, NFS, 0)[20:])  # a record in two records of TLS
    assert record(t) == struct.pack(">6I", 5, 1, 0, 0, 0, 0)
    t.unwrap()  # fails unless the server closes TLS, too
print("calls over", "TLSv1.3", "sunrpc")

s = connect()
s.sendall(call(1, NFS, 1, TLS))  # not NULL
denied(record(s), 1, 1)
s.sendall(call(2, NFS, 1, 0, struct.pack(">I", 0)))  # GETATTR in the clear
denied(record(s), 2, 5)
print("denied what is in the clear")

for what, data in {"a call": call(2, NFS, 0), "a probe": call(2, NFS, 0, TLS), "an old ClientHello": b"\x80\x2e\x01\x00\x02", "an alert": b"\x15\x03\x03\x00\x02\x01\x00"}.items():
    s = connect()
    agreed(s)
    s.sendall(data)
    silent(s)
    s = connect()
    s.sendall(call(1, NFS, 0, TLS) + data)
    silent(s)
    print("silent after", what)

refused(version=ssl.TLSVersion.TLSv1_2)
refused(alpn=("h2",))
if pair:
    refused(certificate=False)

s = connect()  # OpenSSL's own handshake, without ALPN, as tlshd's
agreed(s)
with context(alpn=()).wrap_socket(s, server_hostname=host) as t:
    t.sendall(call(9, NFS, 0))
    assert record(t) == struct.pack(">6I", 9, 1, 0, 0, 0, 0)
print("done")
