import Foundation
import HTTPEngine
import HTTPSystem
package import HTTPWire

/// The engine of a session: the transport of its requests and the executor of their tasks.
package struct Engine: Sendable {
  package let transport: any Transport
  /// Runs work on the engine's thread, asynchronously, once; callable on any thread. `nil` if only tasks can
  /// use the transport.
  let enqueue: (@Sendable (any LoopWork) -> Void)?
  /// Opens streams of bytes; `nil` if the transport cannot.
  let byteStreams: (any ByteStreamTransport)?
  /// The source of the state of the network.
  package let network: any NetworkSource
  /// The executor of the steps of requests; `nil` is the pool.
  package let executor: (any TaskExecutor)?
  /// The number of the engine's turn, on its own thread; `nil` elsewhere.
  package let turn: @Sendable () -> UInt64?
  /// Ends every transfer, now and from now on.
  package let shutDown: @Sendable () -> Void
  /// The number of times that another thread has enqueued work for the engine's thread; for tests and benchmarks.
  package let threadHopCount: @Sendable () -> UInt64
  /// Returns the requests and connections of the transport.
  let snapshot: @Sendable () async -> TransportSnapshot

  /// Makes an engine with a loop of its own, because sessions never share connections.
  package static func standard() -> Engine { Engine(HTTPTransport()) }

  private init(_ engine: some EngineTransport) {
    let loop = engine.loop
    self.init(
      transport: engine, enqueue: { loop.enqueue($0) }, byteStreams: engine, executor: loop,
      turn: { loop.turn }, shutDown: { engine.shutDown() },
      threadHopCount: { loop.threadHopCount }, snapshot: { await engine.snapshot() })
  }

  /// The content codings that the engine decodes, the best one first.
  package static var contentCodings: [String] { ContentCoding.allCases.map(\.rawValue) }

  /// Resumes a task that waits for a response: with all that the engine's turn has served, when called on the
  /// engine's thread, at once elsewhere.
  static func resume(_ waiter: UnsafeContinuation<Void, Never>) { ContinuationBatch.resume(waiter) }

  /// Makes an engine of any other transport and any network, without a thread of its own.
  package init(
    transport: any Transport, enqueue: (@Sendable (any LoopWork) -> Void)? = nil,
    byteStreams: (any ByteStreamTransport)? = nil, network: any NetworkSource = SystemNetwork()
  ) {
    self.init(
      transport: transport, enqueue: enqueue, byteStreams: byteStreams, network: network, executor: nil,
      turn: { nil },
      shutDown: {}, threadHopCount: { 0 }, snapshot: { TransportSnapshot() })
  }

  private init(
    transport: any Transport, enqueue: (@Sendable (any LoopWork) -> Void)? = nil,
    byteStreams: (any ByteStreamTransport)? = nil,
    network: any NetworkSource = SystemNetwork(), executor: (any TaskExecutor)?,
    turn: @escaping @Sendable () -> UInt64?,
    shutDown: @escaping @Sendable () -> Void, threadHopCount: @escaping @Sendable () -> UInt64,
    snapshot: @escaping @Sendable () async -> TransportSnapshot
  ) {
    self.transport = transport
    self.enqueue = enqueue
    self.byteStreams = byteStreams
    self.network = network
    self.executor = executor
    self.turn = turn
    self.shutDown = shutDown
    self.threadHopCount = threadHopCount
    self.snapshot = snapshot
  }
}

extension Engine {
  /// The domains that no cookie is for.
  static var publicSuffixes: any PublicSuffixes { PublicSuffixList.shared }
}

/// The means of the engine to answer challenges.
package enum AuthenticationFeatures {
  package static let hashes: any HashFunctions = OpenSSLHashes()
  /// The hashes that OpenSSL does not refuse on this machine.
  static let algorithms = Set(DigestChallenge.Algorithm.allCases.filter { hashes.hash($0, []) != nil })
  /// The schemes with which the engine authenticates connections.
  package static let connectionSchemes = LoginTokens.schemes
}

extension FieldDigests {
  /// Makes the digests of the fields of a request by OpenSSL.
  package init(of fields: [HTTPHeader]) { self.init(of: fields, hashes: AuthenticationFeatures.hashes) }
}

/// The codings in which bodies are sent.
enum BodyCompression: String, Sendable {
  case deflate
  case gzip

  /// Returns the compressed bytes; `nil` when there is no memory.
  func compressed(_ data: Data) -> Data? {
    switch self {
    case .deflate: Deflater.compress(data, .zlib)
    case .gzip: Deflater.compress(data, .gzip)
    }
  }
}

/// Folders in which responses are stored.
package enum CacheFolder {
  /// Opens a folder; `nil` when there is none that is ours alone, and none can be created.
  package static func open(_ path: String) -> (any EntryFiles)? { EntryFolder(path: path) }
}

/// The means of the engine for WebSocket connections.
package enum WebSocketFeatures {
  package static let compression: any MessageCompression = ZlibMessageCompression()

  /// Returns the SHA-1 of `bytes`; `nil` if OpenSSL refuses it.
  package static func sha1(_ bytes: [UInt8]) -> [UInt8]? { OpenSSLHashes.sha1(bytes) }

  /// Returns random words that cannot be predicted; `nil` without entropy.
  static func randomWords(_ count: Int) -> [UInt32]? { OpenSSLRandom.words(count) }
}
