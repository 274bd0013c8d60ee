import Foundation

// The declarations of other packages that the samples of ServerFrameworks.md use, in the shape that these packages
// publish. The package itself depends on none of them.

// MARK: swift-log

struct Logger: Sendable {
  enum Level: String, Sendable, CaseIterable, Comparable {
    case trace, debug, info, notice, warning, error, critical

    static func < (left: Level, right: Level) -> Bool {
      (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
  }

  struct Message: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    let text: String

    init(stringLiteral value: String) { text = value }
  }

  typealias MetadataValue = Message
  typealias Metadata = [String: MetadataValue]

  final class Lines: Sendable {
    let all = Mutex<[String]>([])
  }

  let label: String
  var logLevel = Level.info
  let lines = Lines()

  init(label: String) { self.label = label }

  func log(level: Level, _ message: @autoclosure () -> Message, metadata: @autoclosure () -> Metadata? = nil)
  {
    guard level >= logLevel else { return }
    let names = (metadata() ?? [:]).keys.sorted().joined(separator: " ")
    let line = "\(level) \(message().text) [\(names)]"
    lines.all.withLock { $0.append(line) }
  }
}

// MARK: swift-distributed-tracing

struct ServiceContext: Sendable {
  @TaskLocal static var current: ServiceContext?

  var traceParent: String
}

protocol Injector<Carrier>: Sendable {
  associatedtype Carrier

  func inject(_ value: String, forKey key: String, into carrier: inout Carrier)
}

/// An instrument as one of OpenTelemetry's packages provides it.
struct Instrument: Sendable {
  func inject<Carrier, Inject: Injector<Carrier>>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) {
    injector.inject(context.traceParent, forKey: "traceparent", into: &carrier)
  }
}

enum InstrumentationSystem {
  static let instrument = Instrument()
}

enum SpanKind: Sendable { case client, server, `internal` }

/// A span that keeps its attributes.
final class Span: Sendable {
  struct Attributes: Sendable {
    private(set) var values: [String: Int] = [:]

    subscript(name: String) -> Int? {
      get { values[name] }
      set { values[name] = newValue }
    }
  }

  @TaskLocal static var finished: Mutexed<[Attributes]>?

  private let state = Mutex(Attributes())

  var attributes: Attributes {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

/// A value that is protected by a lock.
final class Mutexed<Value: Sendable>: Sendable {
  private let state: Mutex<Value>

  init(_ value: Value) { state = Mutex(value) }

  func with<Result: Sendable>(_ body: (inout sending Value) -> sending Result) -> Result {
    state.withLock(body)
  }
}

func withSpan<Result>(
  _ name: String, ofKind kind: SpanKind, _ operation: (Span) async throws -> Result
) async rethrows -> Result {
  let span = Span()
  defer { Span.finished?.with { $0.append(span.attributes) } }
  return try await ServiceContext.$current.withValue(ServiceContext(traceParent: "00-1-\(name.count)-01")) {
    try await operation(span)
  }
}

// MARK: swift-service-lifecycle

protocol Service: Sendable {
  func run() async throws
}

/// Waits until the shutdown begins.
func gracefulShutdown() async throws {}

// MARK: Hummingbird

struct RouterContext: Sendable {
  let logger: Logger
}

struct RouterRequest: Sendable {}

final class Router {
  typealias Handler = @Sendable (RouterRequest, RouterContext) async throws -> any Sendable

  private(set) var handlers: [String: Handler] = [:]

  func get<Output: Sendable>(
    _ path: String, use handler: @escaping @Sendable (RouterRequest, RouterContext) async throws -> Output
  ) {
    handlers[path] = handler
  }
}

// MARK: Vapor

protocol StorageKey {
  associatedtype Value: Sendable
}

struct Storage: Sendable {
  private var shutdowns: [@Sendable () async throws -> Void] = []

  mutating func setWithAsyncShutdown<Key: StorageKey>(
    _ key: Key.Type, to value: Key.Value?, onShutdown: (@Sendable (Key.Value) async throws -> Void)? = nil
  ) async {
    if let value, let onShutdown { shutdowns.append { try await onShutdown(value) } }
  }

  func shutDown() async throws {
    for shutdown in shutdowns { try await shutdown() }
  }
}

final class Application: Sendable {
  private let state = Mutex(Storage())

  var storage: Storage {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
