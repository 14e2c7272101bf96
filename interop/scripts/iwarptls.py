# MPA over TLS by hand, on OpenSSL (docs/tls.md): iwarptls.py HOST PORT CA CERT KEY, where Weft serves RPC over RDMA.
# Each step prints a line; the last one is "done".
import socket, ssl, struct, sys

host, port, ca, pair = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:6]
REQUEST = b"MPA ID Req Frame" + bytes([0x40, 1, 0, 0])  # revision 1, with CRC, no private data
TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = TABLE[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def fpdu(ulpdu):
    frame = struct.pack(">H", len(ulpdu)) + ulpdu
    frame += bytes(-len(frame) % 4)
    return frame + struct.pack("<I", crc32c(frame))  # the octets of a CRC go in the order of iSCSI's


def exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError("the peer has closed")
        data += more
    return data


def ulpdu(s):
    head = exactly(s, 2)
    (length,) = struct.unpack(">H", head)
    frame = head + exactly(s, length + -(length + 2) % 4 + 4)
    assert crc32c(frame[:-4]) == struct.unpack("<I", frame[-4:])[0], "a wrong CRC"
    return frame[2 : 2 + length]


def context(version=ssl.TLSVersion.TLSv1_3, alpn=("iwarp",), certificate=True):
    c = ssl.create_default_context(cafile=ca)
    c.minimum_version = ssl.TLSVersion.TLSv1_2
    c.maximum_version = version
    if alpn:
        c.set_alpn_protocols(alpn)
    if certificate:
        c.load_cert_chain(*pair)
    return c


def connect():
    return socket.create_connection((host, port), 10)


def refused(**changed):
    try:
        t = context(**changed).wrap_socket(connect(), server_hostname=host)
        t.sendall(REQUEST)
        exactly(t, 20)  # with TLS 1.3 the refusal of a certificate comes here
    except (ssl.SSLError, EOFError, ConnectionResetError) as e:
        print("refused", changed, ":", e)
        return
    raise AssertionError("not refused: %r" % changed)


with context().wrap_socket(connect(), server_hostname=host) as t:
    assert t.version() == "TLSv1.3" and t.selected_alpn_protocol() == "iwarp", (t.version(), t.selected_alpn_protocol())
    t.sendall(REQUEST[:7])
    t.sendall(REQUEST[7:])  # in two records
    reply = exactly(t, 20)
    assert reply[:16] == b"MPA ID Rep Frame" and reply[16] & 0xE0 == 0x40 and reply[17] == 1, reply.hex()
    exactly(t, struct.unpack(">H", reply[18:])[0])
    # A Send of RDMAP, to queue 0, with a call of NFS's NULL as RDMA_MSG without chunks.
    rpc = struct.pack(">10I", 7, 0, 2, 100003, 3, 0, 0, 0, 0, 0)
    header = struct.pack(">7I", 7, 1, 32, 0, 0, 0, 0)
    t.sendall(fpdu(struct.pack(">BBIIII", 0x41, 0x43, 0, 0, 1, 0) + header + rpc))
    answer = ulpdu(t)
    assert answer[:2] == b"\x41\x43" and answer[18:22] == rpc[:4], answer.hex()
    assert answer[-24:] == struct.pack(">6I", 7, 1, 0, 0, 0, 0), answer.hex()
    t.unwrap()  # fails unless the server closes TLS, too
print("a call over MPA,", "TLSv1.3", "iwarp")

refused(version=ssl.TLSVersion.TLSv1_2)
refused(alpn=("h2",))
refused(alpn=())
refused(certificate=False)

s = connect()
s.sendall(REQUEST)  # in the clear
alert = exactly(s, 7)
assert alert[0] == 21 and alert[3:] == b"\x00\x02\x02\x0a", alert.hex()  # fatal, unexpected_message
print("refused what is in the clear")
print("done")
