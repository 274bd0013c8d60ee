// The programs of the servers. They have the same paths.
extension WebSocketPeer {
  /// The package has two implementations; versions before 14 serve by the older one.
  static let websocketsScript = """
    import asyncio, ssl, sys, urllib.parse
    import websockets
    from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

    closures = {}

    async def echo(socket, query):
        async for message in socket:
            await socket.send(message)

    async def fragments(socket, query):
        async for message in socket:
            await socket.send([message[i:i + 1] for i in range(len(message))])

    async def pings(socket, query):
        pongs = [await socket.ping() for _ in range(int(query["count"]))]
        await asyncio.gather(*pongs)
        await socket.send("all")
        await socket.recv()

    async def close(socket, query):
        await socket.close(int(query["code"]), query.get("reason", ""))

    async def record(socket, query):
        await socket.wait_closed()
        closures[query["name"]].set_result(f"{socket.close_code} {socket.close_reason}")

    async def recall(socket, query):
        await socket.send(await closures[query["name"]])

    async def abort(socket, query):
        await socket.send("last")
        socket.transport.abort()

    async def serve(socket, *_):
        path = socket.request.path if hasattr(socket, "request") else socket.path
        url = urllib.parse.urlsplit(path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/record":
            closures[query["name"]] = asyncio.get_running_loop().create_future()
        await globals()[url.path[1:]](socket, query)

    async def main():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        deflate = ServerPerMessageDeflateFactory
        configurations = [
            (None, []),
            (context, []),
            (None, [deflate()]),
            (context, [deflate(server_no_context_takeover=True, client_no_context_takeover=True)]),
            (None, [deflate(server_max_window_bits=10, client_max_window_bits=10)]),
        ]
        for port, (tls, extensions) in zip(sys.argv[3:], configurations):
            await websockets.serve(
                serve, "127.0.0.1", int(port), ssl=tls, extensions=extensions, compression=None,
                max_size=None, ping_interval=None, subprotocols=["chat"])
        await asyncio.Future()

    asyncio.run(main())

    """

  static let wsprotoScript = """
    import asyncio, ssl, sys, urllib.parse
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, CloseConnection, Ping, Pong, TextMessage
    from wsproto.extensions import PerMessageDeflate

    closures = {}

    class Socket:
        def __init__(self, reader, writer):
            self.reader, self.writer = reader, writer
            self.wire = WSConnection(ConnectionType.SERVER)

        async def send(self, event):
            self.writer.write(self.wire.send(event))
            await self.writer.drain()

        async def events(self):
            while True:
                for event in self.wire.events():
                    yield event
                data = await self.reader.read(65536)
                if not data:
                    return
                self.wire.receive_data(data)

        async def accept(self, extensions):
            async for event in self.events():
                await self.send(AcceptConnection(subprotocol="chat", extensions=extensions))
                return event.target

        # Yields whole messages and pongs until the closing handshake, and answers pings.
        async def messages(self):
            parts = []
            async for event in self.events():
                if isinstance(event, Ping):
                    await self.send(event.response())
                elif isinstance(event, Pong):
                    yield event
                elif isinstance(event, CloseConnection):
                    self.closure = f"{int(event.code)} {event.reason or ''}"
                    if self.wire.state.name == "REMOTE_CLOSING":
                        await self.send(event.response())
                    return
                else:
                    parts.append(event.data)
                    if event.message_finished:
                        yield type(event)(data=type(event.data)().join(parts))
                        parts = []

        async def closed(self):
            async for message in self.messages():
                pass

    async def echo(socket, query):
        async for message in socket.messages():
            await socket.send(message)

    async def fragments(socket, query):
        async for message in socket.messages():
            for i in range(len(message.data)):
                await socket.send(type(message)(
                    data=message.data[i:i + 1], message_finished=i + 1 == len(message.data)))

    async def pings(socket, query):
        last = int(query["count"]) - 1
        for number in range(last + 1):
            await socket.send(Ping(payload=str(number).encode()))
        async for event in socket.messages():
            if isinstance(event, Pong) and event.payload == str(last).encode():
                await socket.send(TextMessage(data="all"))
            elif isinstance(event, TextMessage):
                await close(socket, {"code": 1000})
                return

    async def close(socket, query):
        await socket.send(CloseConnection(code=int(query["code"]), reason=query.get("reason", "")))
        await socket.closed()

    async def record(socket, query):
        await socket.closed()
        closures[query["name"]].set_result(socket.closure)

    async def recall(socket, query):
        await socket.send(TextMessage(data=await closures[query["name"]]))
        await close(socket, {"code": 1000})

    async def abort(socket, query):
        await socket.send(TextMessage(data="last"))
        socket.writer.transport.abort()

    async def serve(reader, writer, extensions):
        socket = Socket(reader, writer)
        try:
            target = await socket.accept(extensions)
            if target is not None:
                url = urllib.parse.urlsplit(target)
                query = dict(urllib.parse.parse_qsl(url.query))
                if url.path == "/record":
                    closures[query["name"]] = asyncio.get_running_loop().create_future()
                await globals()[url.path[1:]](socket, query)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def main():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        deflate = PerMessageDeflate
        configurations = [
            (None, lambda: []),
            (context, lambda: []),
            (None, lambda: [deflate()]),
            (context, lambda: [deflate(
                server_no_context_takeover=True, client_no_context_takeover=True)]),
            (None, lambda: [deflate(server_max_window_bits=10, client_max_window_bits=10)]),
        ]
        for port, (tls, extensions) in zip(sys.argv[3:], configurations):
            await asyncio.start_server(
                lambda reader, writer, extensions=extensions: serve(reader, writer, extensions()),
                "127.0.0.1", int(port), ssl=tls)
        await asyncio.Future()

    asyncio.run(main())

    """
}
