import Foundation

/// A WebSocket server by other authors, with one port for each configuration.
final class WebSocketPeer: Sendable {
  /// A package of Python with its own WebSocket implementation.
  enum Package: CaseIterable {
    /// The package of Debian.
    case websockets
    /// The package in `.build/venv`.
    case wsproto

    var program: String { self == .websockets ? "/usr/bin/python3" : PythonEnvironment.program }

    fileprivate var script: String {
      self == .websockets ? WebSocketPeer.websocketsScript : WebSocketPeer.wsprotoScript
    }
  }

  /// Whether both packages are installed.
  static var areInstalled: Bool {
    FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/websockets/__init__.py")
      && PythonEnvironment.has("wsproto")
  }

  enum Entrance: Int, CaseIterable {
    case plain
    case secure
    /// With permessage-deflate, and one context for the whole connection.
    case compressed
    /// With permessage-deflate, each message independently, over TLS.
    case compressedAlone
    /// With permessage-deflate and windows of a kibibyte.
    case compressedSmall

    var isSecure: Bool { self == .secure || self == .compressedAlone }

    /// Returns the parameters of the extension that the server accepts.
    func parameters(_ package: Package) -> Set<String> {
      let alone: Set = ["permessage-deflate", "server_no_context_takeover", "client_no_context_takeover"]
      // wsproto always answers `client_max_window_bits`. It never names its own window without being asked to.
      return switch (self, package) {
      case (.plain, _), (.secure, _): []
      case (.compressed, .websockets): ["permessage-deflate"]
      case (.compressed, .wsproto): ["permessage-deflate", "client_max_window_bits=15"]
      case (.compressedAlone, .websockets): alone
      case (.compressedAlone, .wsproto): alone.union(["client_max_window_bits=15"])
      case (.compressedSmall, .websockets):
        ["permessage-deflate", "server_max_window_bits=10", "client_max_window_bits=10"]
      case (.compressedSmall, .wsproto): ["permessage-deflate", "client_max_window_bits=10"]
      }
    }
  }

  private static let starting = [
    Package.websockets: Task { try await WebSocketPeer(.websockets) },
    Package.wsproto: Task { try await WebSocketPeer(.wsproto) },
  ]

  /// Returns the server of most tests, started by the first use of any.
  static func shared(_ package: Package) async throws -> WebSocketPeer {
    guard let starting = starting[package] else { throw CancellationError() }
    return try await starting.value
  }

  private static let startingForScale = Task { try await WebSocketPeer(.websockets) }

  /// A server apart from ``shared(_:)``, which one large message can occupy for longer than a closing handshake may
  /// take.
  static var forScale: WebSocketPeer {
    get async throws { try await startingForScale.value }
  }

  /// The file with the authority of the server's certificate.
  let authority: String
  private let ports: [UInt16]
  private let process: ServerProcess

  private init(_ package: Package) async throws {
    let folder = try ServerProcess.makeFolder("websockets")
    let certificates = try await Certificates(in: folder)
    authority = certificates.authority
    ports = try Loopback.freePorts(Entrance.allCases.count)
    let file = folder.appendingPathComponent("peer.py")
    try Data(package.script.utf8).write(to: file)
    process = try ServerProcess(
      [package.program, "-I", file.path, certificates.certificate, certificates.key] + ports.map(String.init),
      in: folder)
    try await process.untilAnswering(ports)
  }

  func url(_ entrance: Entrance, _ path: String) -> String {
    "\(entrance.isSecure ? "wss" : "ws")://127.0.0.1:\(ports[entrance.rawValue])\(path)"
  }
}
