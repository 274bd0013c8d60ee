import Foundation

/// A proxy for SOCKS4 and SOCKS4a, because no package has one. It accepts either addresses or names.
final class SOCKS4Server: Sendable {
  private static let program = """
    import socket, struct, sys, threading

    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def text(client):
        found = b""
        while (byte := client.recv(1)) not in (b"", b"\\0"):
            found += byte
        return found.decode()

    def serve(client):
        version, command, port, address = struct.unpack("!BBH4s", client.recv(8, socket.MSG_WAITALL))
        text(client)
        is_name = address[:3] == b"\\0\\0\\0" and address[3] != 0
        host = text(client) if is_name else socket.inet_ntoa(address)
        if version != 4 or command != 1 or is_name != (sys.argv[2] == "names"):
            client.sendall(b"\\0\\x5b" + bytes(6))
            return client.close()
        server = socket.create_connection((host, port))
        client.sendall(b"\\0\\x5a" + bytes(6))
        threading.Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)

    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()

    """

  let port: UInt16
  private let process: ServerProcess

  /// Starts the proxy, and returns when it accepts connections.
  ///
  /// - Parameter takesNames: Whether it accepts names and refuses addresses, instead of the opposite.
  init(takesNames: Bool) async throws {
    let folder = try ServerProcess.makeFolder("socks4")
    port = try Loopback.freePorts(1)[0]
    let file = folder.appendingPathComponent("socks4.py")
    try Data(Self.program.utf8).write(to: file)
    process = try ServerProcess(
      ["/usr/bin/python3", file.path, "\(port)", takesNames ? "names" : "addresses"], in: folder)
    try await process.untilAnswering([port])
  }
}
