import Foundation

/// A server of Node that reads and sends trailers, with one port for HTTP/1.1 and one for HTTP/2 without TLS.
final class TrailerPeer: Sendable {
  static let program = "/usr/bin/node"

  let ports: [UInt16]
  private let process: ServerProcess

  init() async throws {
    let folder = try ServerProcess.makeFolder("trailers")
    ports = try Loopback.freePorts(2)
    let file = folder.appendingPathComponent("server.js")
    try Data(Self.script.utf8).write(to: file)
    process = try ServerProcess([Self.program, file.path] + ports.map(String.init), in: folder)
    try await process.untilAnswering(ports)
  }

  func url(isHTTP2: Bool) -> String { "http://127.0.0.1:\(ports[isHTTP2 ? 1 : 0])/" }

  /// Answers with trailers that have the size of the body, the trailers of the request, and what the request announced.
  private static let script = """
    const http = require('http'), http2 = require('http2');
    const [plain, multiplexed] = process.argv.slice(2).map(Number);
    const result = (size, trailers, head) => ({
      'x-size': String(size), 'x-received': JSON.stringify(trailers),
      'x-announced': head.trailer ?? 'none', 'x-te': head.te ?? 'none'
    });
    http.createServer((request, response) => {
      let size = 0;
      request.on('data', (data) => { size += data.length; });
      request.on('end', () => {
        response.writeHead(200, { Trailer: 'x-size, x-received, x-announced, x-te' });
        response.write('body');
        response.addTrailers(result(size, request.trailers, request.headers));
        response.end();
      });
    }).listen(plain, '127.0.0.1');
    http2.createServer().on('stream', (stream, head) => {
      let size = 0, received = {};
      stream.on('trailers', (trailers) => { received = { ...trailers }; });
      stream.on('data', (data) => { size += data.length; });
      stream.on('end', () => {
        stream.respond({ ':status': 200 }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers(result(size, received, head)));
        stream.end('body');
      });
    }).listen(multiplexed, '127.0.0.1');
    """
}
