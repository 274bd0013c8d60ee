import AlamofireV4
import Foundation
import Testing

extension URLSessionConfiguration {
  /// A configuration with neither a shared cache nor shared cookies.
  static var solitary: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

extension SessionManager {
  /// A manager that shares nothing.
  static func solitary(
    delegate: SessionDelegate = SessionDelegate(), _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) -> SessionManager {
    let configuration = URLSessionConfiguration.solitary
    change(configuration)
    return SessionManager(configuration: configuration, delegate: delegate)
  }
}

/// A value of a handler, which has no other references.
struct Carried<Value>: @unchecked Sendable {
  let value: Value
}

/// Waits for what a closure is called with, once.
func awaited<Value>(
  _ body: (@escaping @Sendable (Carried<Value>) -> Void) -> Void
) async -> Value {
  await withCheckedContinuation { continuation in
    body { continuation.resume(returning: $0) }
  }.value
}

extension DataRequest {
  /// The response without a serializer; the manager has to be kept meanwhile.
  func ended() async -> DefaultDataResponse {
    await awaited { done in response { done(Carried(value: $0)) } }
  }

  func json() async -> DataResponse<Any> {
    await awaited { done in responseJSON { done(Carried(value: $0)) } }
  }

  func text() async -> DataResponse<String> {
    await awaited { done in responseString { done(Carried(value: $0)) } }
  }
}

extension DownloadRequest {
  func ended() async -> DefaultDownloadResponse {
    await awaited { done in response { done(Carried(value: $0)) } }
  }
}

/// Whether a condition becomes true within two minutes, for events without a notification, such as the release of an
/// object.
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

/// Whether this is the main queue; which thread serves it is up to the program.
var isOnMainQueue: Bool { DispatchQueue.getSpecific(key: mainKey) == true }

/// Values that closures record, on any thread.
final class Notes<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  var all: [Value] { state.withLock { $0 } }
  var count: Int { all.count }

  func add(_ value: Value) { state.withLock { $0.append(value) } }
}

/// A folder that is removed with its last reference.
final class Folder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("v4-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }
}

/// The most memory that this process has had, in KiB.
func peakOfMemory() throws -> Int {
  let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
}
