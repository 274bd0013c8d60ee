import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

/// The arguments of a handler with four values.
struct RequestResult: Sendable {
  let request: URLRequest?
  let response: HTTPURLResponse?
  let data: Data?
  let error: NSError?

  var status: Int? { response?.statusCode }
  var text: String? { data.map { String(decoding: $0, as: UTF8.self) } }
  /// The domain and the code of the error.
  var fault: String? { error.map { "\($0.domain) \($0.code)" } }
}

extension Request {
  /// Waits for the end of the request.
  func end() async -> RequestResult {
    await withCheckedContinuation { continuation in
      response(queue: .global()) { request, response, data, error in
        continuation.resume(
          returning: RequestResult(request: request, response: response, data: data, error: error))
      }
    }
  }

  /// Returns the response that a handler of `add` receives.
  func outcome<Value>(
    of add: (Request, @escaping (Response<Value, NSError>) -> Void) -> Request
  ) async -> Response<Value, NSError> {
    let box = await withCheckedContinuation { continuation in
      _ = add(self) { continuation.resume(returning: UncheckedBox(value: $0)) }
    }
    return box.value
  }
}

/// A value that a handler hands over to its test.
struct UncheckedBox<Value>: @unchecked Sendable {
  // Unchecked: the handler does not use the value after the transfer.
  let value: Value
}

/// Records calls of closures on any thread, and lets a test wait for them.
final class Notes: Sendable {
  private struct State {
    var lines: [String] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var lines: [String] { state.withLock { $0.lines } }

  func add(_ line: String) {
    let ready = state.withLock { state in
      state.lines.append(line)
      let count = state.lines.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }.map(\.continuation)
    }
    for continuation in ready { continuation.resume() }
  }

  /// Waits until there are `count` lines, and returns all.
  func wait(for count: Int) async -> [String] {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        if state.lines.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
    return lines
  }
}

extension Manager {
  /// Returns a manager with its own cache and cookies, which is released at the end of the process.
  static func isolated(
    starting: Bool = true, delegate: SessionDelegate = SessionDelegate(),
    policies: ServerTrustPolicyManager? = nil, options: TransportOptions = TransportOptions()
  ) -> Manager {
    let manager = Manager(
      configuration: .isolated, delegate: delegate, serverTrustPolicyManager: policies,
      transportOptions: options)
    manager.startRequestsImmediately = starting
    kept.withLock { $0.append(manager) }
    return manager
  }
}

private let kept = Mutex<[Manager]>([])

extension URLSessionConfiguration {
  static var isolated: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

/// A temporary folder of one test, which is removed at the end of the test.
final class Folder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("v3-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String, _ text: String? = nil) throws -> URL {
    let file = url.appendingPathComponent(name)
    if let text { try Data(text.utf8).write(to: file) }
    return file
  }
}

/// Returns the value of a path of a JSON document, as text.
func value(_ path: String, of json: Any?) -> String? {
  var value = json
  for key in path.split(separator: ".") { value = (value as? [String: Any])?[String(key)] }
  return value.map { "\($0)" }
}

private let mainQueueKey: DispatchSpecificKey<Bool> = {
  let key = DispatchSpecificKey<Bool>()
  DispatchQueue.main.setSpecific(key: key, value: true)
  return key
}()

/// Whether the caller runs on the main queue. The queue is marked because it has no dedicated thread if the main thread
/// is in `dispatchMain()`.
var isOnMain: Bool { DispatchQueue.getSpecific(key: mainQueueKey) ?? false }

/// Returns the peak of resident memory of this process, in KiB.
func peakOfMemory() throws -> Int {
  let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
}
