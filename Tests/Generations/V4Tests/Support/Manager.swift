import AlamofireV4
import Foundation
import Testing

extension URLSessionConfiguration {
  /// A configuration without a cache and with its own cookies.
  static var isolated: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

extension SessionManager {
  /// Returns a manager that shares no storage.
  static func isolated(
    delegate: SessionDelegate = SessionDelegate(), _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) -> SessionManager {
    let configuration = URLSessionConfiguration.isolated
    change(configuration)
    return SessionManager(configuration: configuration, delegate: delegate)
  }
}

/// A value that a handler hands over to its test.
struct UncheckedBox<Value>: @unchecked Sendable {
  // Unchecked: the handler does not use the value after the transfer.
  let value: Value
}

/// Waits for the first call of a closure, and returns its argument.
func awaited<Value>(
  _ body: (@escaping @Sendable (UncheckedBox<Value>) -> Void) -> Void
) async -> Value {
  await withCheckedContinuation { continuation in
    body { continuation.resume(returning: $0) }
  }.value
}

extension DataRequest {
  /// Waits for the response without a serializer. The caller must hold the manager until then.
  func ended() async -> DefaultDataResponse {
    await awaited { done in response { done(UncheckedBox(value: $0)) } }
  }

  func json() async -> DataResponse<Any> {
    await awaited { done in responseJSON { done(UncheckedBox(value: $0)) } }
  }

  func text() async -> DataResponse<String> {
    await awaited { done in responseString { done(UncheckedBox(value: $0)) } }
  }
}

extension DownloadRequest {
  func ended() async -> DefaultDownloadResponse {
    await awaited { done in response { done(UncheckedBox(value: $0)) } }
  }

  /// Waits for the response, and removes the file of a download without a destination.
  func endedWithoutFile() async -> DefaultDownloadResponse {
    let response = await ended()
    if let file = response.temporaryURL { try? FileManager.default.removeItem(at: file) }
    return response
  }
}

/// Polls a condition for at most two minutes. For the release of objects, which has no event.
func eventually(_ condition: () -> Bool) async -> Bool {
  let deadline = ContinuousClock.now + .seconds(120)
  while ContinuousClock.now < deadline {
    if condition() { return true }
    await Task.yield()
  }
  return condition()
}

private let mainKey: DispatchSpecificKey<Bool> = {
  let key = DispatchSpecificKey<Bool>()
  DispatchQueue.main.setSpecific(key: key, value: true)
  return key
}()

/// Whether the caller runs on the main queue, which any thread may serve.
var isOnMainQueue: Bool { DispatchQueue.getSpecific(key: mainKey) == true }

/// Records values that closures add on any thread.
final class Notes<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  var all: [Value] { state.withLock { $0 } }
  var count: Int { all.count }

  func add(_ value: Value) { state.withLock { $0.append(value) } }
}

/// A temporary folder that is removed when it is released.
final class Folder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("v4-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }
}

/// Returns the peak of resident memory of this process, in KiB.
func peakOfMemory() throws -> Int {
  let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
}
