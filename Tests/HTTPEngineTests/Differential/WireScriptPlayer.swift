import ChildProcesses
import Foundation
import HTTPEngine
import HTTPTestServer
import HTTPWire

/// The result of a client with one script.
struct WireOutcome: Sendable, Equatable, CustomStringConvertible {
  enum Kind: Sendable, Equatable {
    case response(status: Int, body: BodyDigest)
    /// The bytes are not HTTP.
    case malformed
    /// The connection ended too early.
    case cutOff
    /// The content coding of the body is wrong.
    case undecodable
    case other(String)
  }

  /// The length and a hash of a body.
  struct BodyDigest: Sendable, Equatable {
    let count: Int
    let hash: UInt64

    init(_ bytes: [UInt8]) {
      count = bytes.count
      // FNV-1a.
      hash = bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
  }

  var kind: Kind
  /// The result of the next request to the same host.
  var next: Kind
  var traffic: WireScriptServer.Traffic

  var description: String {
    func text(_ kind: Kind) -> String {
      switch kind {
      case .response(let status, let body): "\(status) with \(body.count) bytes (\(body.hash % 10_000))"
      default: "\(kind)"
      }
    }
    return """
      \(text(kind)), next \(text(next)), \(traffic.requestCount) requests, \(traffic.connectionCount) connections
      """
  }
}

/// A client that scripts are played to: a column of the comparison.
protocol WireScriptPlayer: Sendable {
  /// Sends the requests of all scripts. Returns the outcomes in the order of the scripts.
  func play(_ scripts: [WireScript], _ form: WireScript.Form) async throws -> [WireOutcome]
}

extension WireScriptPlayer {
  fileprivate static func steps(_ form: WireScript.Form) -> [String] {
    form == .reusedConnection ? ["before", "script", "next"] : ["script", "next"]
  }
}

/// The engine.
struct EnginePlayer: WireScriptPlayer {
  func play(_ scripts: [WireScript], _ form: WireScript.Form) async throws -> [WireOutcome] {
    let server = try WireScriptServer(scripts.map { $0.split(form) })
    let client = Client()
    defer { client.transport.shutDown() }
    var outcomes: [WireOutcome] = []
    for index in scripts.indices {
      var kinds: [String: WireOutcome.Kind] = [:]
      for step in Self.steps(form) {
        let request = try client.request(server.url(index, step), idleTimeout: .seconds(30))
        kinds[step] = await Self.kind(of: request, client)
      }
      outcomes.append(
        WireOutcome(
          kind: kinds["script"] ?? .other("missing"), next: kinds["next"] ?? .other("missing"),
          traffic: server.traffic(index)))
    }
    return outcomes
  }

  private static func kind(of request: WireRequest, _ client: Client) async -> WireOutcome.Kind {
    do throws(TransportFailure) {
      let response = try await client.transport.send(request, observer: Watcher())
      return .response(status: response.status, body: .init(response.bytes))
    } catch {
      switch error.kind {
      case .badServerResponse: return .malformed
      case .connectionLost: return .cutOff
      case .cannotDecodeContent: return .undecodable
      default: return .other("\(error.kind)")
      }
    }
  }
}

/// The command `curl`, which sends the requests of many scripts in one process.
struct CurlCommand: WireScriptPlayer {
  static let isInstalled = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
    .split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/curl") }

  func play(_ scripts: [WireScript], _ form: WireScript.Form) async throws -> [WireOutcome] {
    let server = try WireScriptServer(scripts.map { $0.split(form) })
    var kinds: [String: WireOutcome.Kind] = [:]
    var rest = scripts.indices
    while let first = rest.first {
      let found = try await Self.run(server, rest, form)
      kinds.merge(found) { $1 }
      // Some errors end the process. Another one continues with the next script.
      let last = found.keys.compactMap { $0.split(separator: ".").first.flatMap { Int($0) } }.max() ?? first
      rest = (last + 1)..<scripts.endIndex
    }
    return scripts.indices.map { index in
      WireOutcome(
        kind: kinds["\(index).script"] ?? .other("not sent"),
        next: kinds["\(index).next"] ?? .other("not sent"),
        traffic: server.traffic(index))
    }
  }

  /// Runs curl once. Returns what it reports, by the numbers of the scripts and the steps.
  private static func run(
    _ server: WireScriptServer, _ scripts: Range<Int>, _ form: WireScript.Form
  ) async throws -> [String: WireOutcome.Kind] {
    let folder = try TemporaryFolder()
    let transfers = scripts.flatMap { index in
      steps(form).map { step in
        """
        url = "\(server.url(index, step))"
        output = "\(folder.path)/\(index).\(step)"
        write-out = "\(index).\(step) %{exitcode} %{http_code}\\n"
        compressed
        noproxy = "*"
        path-as-is
        ipv4
        max-time = 30

        """
      }
    }
    let file = try folder.write(Array(transfers.joined(separator: "next\n").utf8), "config")
    let run = try await ChildRun(["curl", "-q", "--silent", "--config", file])
    var kinds: [String: WireOutcome.Kind] = [:]
    for line in String(decoding: run.output, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 3, let status = Int(words[2]) else { continue }
      kinds[words[0]] = kind(words[1], status, (try? folder.read(words[0])) ?? [])
    }
    return kinds
  }

  /// Returns the meaning of an exit status (curl(1), "EXIT CODES").
  private static func kind(_ code: String, _ status: Int, _ body: [UInt8]) -> WireOutcome.Kind {
    switch code {
    case "0": .response(status: status, body: .init(body))
    case "1", "8", "43": .malformed
    case "18", "52", "56": .cutOff
    case "23", "61": .undecodable
    default: .other("exit status \(code)")
    }
  }
}
