import Foundation

/// A WebSocket server that uses the `websockets` package of Python, with one port for each configuration.
final class WebSocketPeer: Sendable {
  static let program = "/usr/bin/python3"

  /// Whether the package is installed.
  static var isInstalled: Bool {
    FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/websockets/__init__.py")
  }

  enum Entrance: Int, CaseIterable {
    case plain
    case secure
    /// With permessage-deflate, whose context lasts for the connection.
    case compressed
    /// With permessage-deflate, each message by itself, over TLS.
    case compressedAlone
    /// With permessage-deflate and windows of a kibibyte.
    case compressedSmall

    var isSecure: Bool { self == .secure || self == .compressedAlone }

    /// The parameters of the extension that the server accepts.
    var parameters: Set<String> {
      switch self {
      case .plain, .secure: []
      case .compressed: ["permessage-deflate"]
      case .compressedAlone:
        ["permessage-deflate", "server_no_context_takeover", "client_no_context_takeover"]
      case .compressedSmall:
        ["permessage-deflate", "server_max_window_bits=10", "client_max_window_bits=10"]
      }
    }
  }

  private static let starting = Task { try await WebSocketPeer() }

  /// The server of most tests, started by the first use.
  static var shared: WebSocketPeer {
    get async throws { try await starting.value }
  }

  private static let startingForScale = Task { try await WebSocketPeer() }

  /// A server apart from ``shared``, which one large message can occupy for longer than a closing handshake may take.
  static var forScale: WebSocketPeer {
    get async throws { try await startingForScale.value }
  }

  /// The file with the authority of the server's certificate.
  let authority: String
  private let ports: [UInt16]
  private let process: ServerProcess

  private init() async throws {
    let folder = try ServerProcess.makeFolder("websockets")
    let certificates = try await Certificates(in: folder)
    authority = certificates.authority
    ports = try Loopback.freePorts(Entrance.allCases.count)
    let file = folder.appendingPathComponent("peer.py")
    try Data(Self.script.utf8).write(to: file)
    process = try ServerProcess(
      [Self.program, "-I", file.path, certificates.certificate, certificates.key] + ports.map(String.init),
      in: folder)
    try await process.untilAnswering(ports)
  }

  func url(_ entrance: Entrance, _ path: String) -> String {
    "\(entrance.isSecure ? "wss" : "ws")://127.0.0.1:\(ports[entrance.rawValue])\(path)"
  }

  /// The package has two implementations; versions before 14 serve by the older one.
  private static let script = """
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
}
