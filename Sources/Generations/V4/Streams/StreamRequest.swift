import Alamofire
import Foundation
public import FoundationNetworking

/// The task of a ``StreamRequest``. Foundation's own class of this name can do nothing on Linux.
public typealias URLSessionStreamTask = Alamofire::ByteStreamTask

/// A two-way connection to a host and a port. A ``SessionManager`` makes it. Its task performs the operations, in the
/// order of the calls.
///
/// ```swift
/// let stream = Alamofire.stream(withHostName: "mail.example.com", port: 25)
/// if let task = stream.task as? URLSessionStreamTask {
///   task.readData(ofMinLength: 1, maxLength: 512, timeout: 10) { data, isAtEnd, error in
///     print(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(error!)")
///   }
///   task.write(Data("QUIT\r\n".utf8), timeout: 10) { error in
///     task.closeWrite()
///   }
/// }
/// ```
///
/// The stream ends when both sides are closed, when it fails or is cancelled, and with its manager.
///
/// The overload with a `NetService` is missing, because Linux has no Bonjour. So are `captureStreams()` and
/// `stopSecureConnection()` of the tasks, and the `streamTask…` closures of the delegate: the handlers of reads and
/// writes report what happened.
open class StreamRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// The session of the base class's request, which is never sent.
  private static let unusedSession = Alamofire::Session(
    configuration: .ephemeral, startRequestsImmediately: false, eventMonitors: [])

  private let stream: Alamofire::ByteStreamRequest
  private let queueOfEnd: DispatchQueue

  init(_ stream: Alamofire::ByteStreamRequest, _ bridge: RequestBridge, of manager: SessionManager) {
    self.stream = stream
    queueOfEnd = manager.core.rootQueue
    super.init(Self.unusedSession.request("http://localhost/"), bridge, of: manager)
  }

  /// Reports the end of the stream to the bridge. The stream retains the bridge, so that this request may be released
  /// before the end.
  override func observeEnd() {
    stream.onEnd(queue: queueOfEnd) { [bridge] in bridge.ended(metrics: nil, resumeData: nil, error: $0) }
  }

  override func startCore() { stream.resume() }

  /// The task, which is a ``URLSessionStreamTask``.
  open override var task: URLSessionTask? { stream.task }

  /// A stream has none: `nil`.
  open override var request: URLRequest? { nil }

  /// A stream has none: `nil`.
  open override var response: HTTPURLResponse? { nil }

  /// Always 0, because a stream is not opened again.
  open override var retryCount: UInt { 0 }

  /// Holds the stream back, which neither reads nor writes until ``Request/resume()``.
  open override func suspend() {
    stream.suspend()
    post(Notification.Name.Task.DidSuspend)
  }

  /// Ends the stream with `URLError.cancelled`, unless it is over.
  open override func cancel() {
    stream.cancel()
    post(Notification.Name.Task.DidCancel)
  }

  /// `HOST:PORT`.
  open override var description: String { "\(stream.host):\(stream.port)" }

  /// `HOST:PORT`.
  open override var debugDescription: String { description }
}

extension SessionManager {
  /// Makes a connection to a host and a port, in the clear; `startSecureConnection()` of its task begins TLS, which is
  /// evaluated by the manager's policies.
  ///
  /// - Parameters:
  ///   - hostName: A name or an address.
  ///   - port:     From 1 to 65,535.
  @discardableResult
  public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    StreamRequest(core.byteStream(host: hostName, port: port), RequestBridge(manager: self), of: self)
  }
}

extension Alamofire {
  /// ``AlamofireV4/StreamRequest``.
  public typealias StreamRequest = AlamofireV4::StreamRequest
  /// ``AlamofireV4/URLSessionStreamTask``, also in files that import FoundationNetworking themselves.
  public typealias URLSessionStreamTask = AlamofireV4::URLSessionStreamTask

  /// Makes a connection by ``SessionManager/default``; see ``SessionManager/stream(withHostName:port:)``.
  @discardableResult
  public static func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port)
  }
}
