# A relay of iWARP between TCP and TLS, on OpenSSL: tlsrelay.py SIDE HOST PORT CA CERT KEY
# As the server of TLS it stands before a server without; as the client, before one with TLS.
import asyncio, ssl, sys

side, host, port, ca, cert, key = sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:7]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.load_cert_chain(cert, key)
context.load_verify_locations(ca)
context.verify_mode = ssl.CERT_REQUIRED
context.set_alpn_protocols(["iwarp"])
accepted, dialed = (context, None) if side == "server" else (None, context)


async def copy(reader, writer):
    while data := await reader.read(1 << 20):
        writer.write(data)
        await writer.drain()
    writer.close()


async def relay(reader, writer):
    there, back = await asyncio.open_connection(host, port, ssl=dialed)
    t = (writer if accepted else back).get_extra_info("ssl_object")
    assert t.version() == "TLSv1.3" and t.selected_alpn_protocol() == "iwarp" and t.getpeercert()
    print("secured", flush=True)
    await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=accepted)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
