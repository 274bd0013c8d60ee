import Alamofire
import Foundation

/// A WebSocket connection: each line of the standard input is a message, and each message of the server a line of the
/// output. At the end of the input the connection is closed.
struct WebSocketExchange {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let socket = session.webSocketRequest(performing: request)
    if invocation.authentication == .digest, let credentials = invocation.credentials {
      socket.authenticate(username: credentials.user, password: credentials.password ?? "")
    }
    let printer = MessagePrinter(environment, invocation)
    // Serial, so that messages keep their order; the main queue waits for the end.
    let queue = DispatchQueue(label: "af.messages")
    environment.interruption.onSignal { socket.cancel() }
    let end = await withCheckedContinuation { continuation in
      socket.streamMessageEvents(on: queue) { event in
        switch event.kind {
        case .connected:
          guard printer.begin(socket.request ?? request, socket.response) else { return event.cancel() }
          // Not earlier, because closing a socket that is not connected cancels it.
          if !invocation.ignoresInput { sendInput(to: socket, printer) }
        case .receivedMessage(let message): if !printer.write(message) { event.cancel() }
        case .serializerFailed: break
        case .disconnected(let code, let reason): printer.disconnected(code, reason)
        case .completed(let completion): continuation.resume(returning: completion)
        }
      }
    }
    if let response = end.response {
      _ = printer.begin(socket.request ?? request, response)
      kept.store(from: session, invocation)
    }
    if end.error != nil {
      ResponsePrinter(environment: environment, invocation: invocation).writeRefused(
        socket.data, end.response)
    }
    return printer.finish(end)
  }

  /// Reads lines on a separate thread, because the input blocks.
  private func sendInput(to socket: WebSocketRequest, _ printer: MessagePrinter) {
    let read = environment.readInput
    Thread {
      var lines = InputLines(read)
      // One message at a time, so that a fast input waits for the network.
      let turn = DispatchSemaphore(value: 0)
      do {
        while let line = try lines.next() {
          socket.send(.string(line), queue: DispatchQueue.global()) { _ in turn.signal() }
          turn.wait()
        }
      } catch {
        printer.inputFailed(error)
      }
      socket.close(sending: WebSocketCloseCode.normalClosure)
    }.start()
  }
}

/// The lines of the standard input.
struct InputLines {
  private let read: @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
  private var bytes: [UInt8] = []
  /// The position in the bytes at which the next line begins.
  private var start = 0
  /// The position up to which no line of the bytes ends.
  private var scanned = 0
  private var isOver = false

  init(_ read: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int) {
    self.read = read
  }

  /// Returns the next line without its break; a last line needs none. Throws if the input cannot be read, and then the
  /// beginning of a line is dropped. Throws also for a line that is not UTF-8, of which a text would have other bytes.
  mutating func next() throws -> String? {
    while true {
      if let end = bytes[scanned...].firstIndex(of: 0x0A) {
        defer { (start, scanned) = (end + 1, end + 1) }
        return try Self.text(bytes[start..<end])
      }
      bytes.removeFirst(start)
      (start, scanned) = (0, bytes.count)
      if isOver {
        defer { (bytes, scanned) = ([], 0) }
        return try bytes.isEmpty ? nil : Self.text(bytes[...])
      }
      var room = [UInt8](repeating: 0, count: 65_536)
      let count = try room.withUnsafeMutableBytes { try read($0) }
      if count == 0 { isOver = true } else { bytes += room[..<count] }
    }
  }

  private static func text(_ line: ArraySlice<UInt8>) throws(UsageError) -> String {
    guard let text = String(validating: line, as: UTF8.self) else {
      throw UsageError("A line of the standard input is not text in UTF-8; it was not sent.")
    }
    return text
  }
}

/// Prints messages, and remembers the end of their connection.
private final class MessagePrinter: Sendable {
  private struct End {
    var code = WebSocketCloseCode.noStatusReceived
    var reason = ""
    var isUnread = false
    var hasHeads = false
    var inputFailure: String?
  }

  private let environment: Environment
  private let invocation: Invocation
  /// The end of the connection, for its handlers and the main thread.
  private let end = Mutex(End())

  init(_ environment: Environment, _ invocation: Invocation) {
    self.environment = environment
    self.invocation = invocation
  }

  /// Shows the heads of the handshake once. The request is shown without the fields that the handshake adds. Returns
  /// whether they were written, if they were asked for.
  func begin(_ request: URLRequest, _ response: HTTPURLResponse?) -> Bool {
    let isVerbose = invocation.shown == .everything
    guard isVerbose || invocation.shown == .headers else { return true }
    let isShown = end.withLock { end in
      defer { end.hasHeads = true }
      return end.hasHeads
    }
    if isShown { return true }
    let sent =
      isVerbose
      ? Head(
        request, common: Session.headers(invocation), repeated: invocation.typedFields.repeated,
        bodyLength: nil) : nil
    let palette = environment.palette(of: invocation)
    let text = [sent, response.map { Head($0) }].compactMap { $0.map { $0.text(palette) + "\n" } }.joined()
    guard !environment.writeOutput(Data(text.utf8)) else { return true }
    end.withLock { $0.isUnread = true }
    return false
  }

  /// Returns whether the message was written.
  func write(_ message: URLSessionWebSocketTask.Message) -> Bool {
    let isWritten: Bool
    switch message {
    case .string(let text):
      let shown = environment.showsReadableText(of: invocation) ? ReadableText.lines(text) : text
      isWritten = environment.writeOutput(Data((shown + "\n").utf8))
    case .data(let data) where environment.isOutputTerminal:
      let note = "(a binary message of \(ByteCount.text(Int64(data.count))))\n"
      isWritten = environment.writeOutput(Data(environment.palette(of: invocation).paint(note, .faint).utf8))
    case .data(let data): isWritten = environment.writeOutput(data)
    @unknown default: isWritten = true
    }
    if !isWritten { end.withLock { $0.isUnread = true } }
    return isWritten
  }

  func disconnected(_ code: WebSocketCloseCode, _ reason: Data?) {
    end.withLock { end in
      end.code = code
      end.reason = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
  }

  func inputFailed(_ error: any Error) {
    let text = (error as? UsageError)?.message ?? error.localizedDescription
    end.withLock { $0.inputFailure = text }
  }

  func finish(_ completion: WebSocketRequest.Completion) -> ExitCode {
    let end = end.withLock { $0 }
    if end.isUnread || environment.interruption.signal != nil { return .success }
    if let failure = end.inputFailure {
      Command.complain(failure, in: environment)
      return .failure
    }
    if let error = completion.error {
      let status = completion.response.map { ExitCode(statusCode: $0.statusCode) } ?? .success
      Command.complain(
        FailureMessage.text(error, isVerbose: invocation.shown == .everything), in: environment)
      return status == .success || !invocation.checksStatus ? .failure : status
    }
    let isNormal = [.normalClosure, .goingAway, .noStatusReceived].contains(end.code)
    if isNormal || !invocation.checksStatus { return .success }
    let reason = end.reason.isEmpty ? "." : ": \(ReadableText.line(end.reason))"
    Command.complain("The server closed the connection with \(end.code)\(reason)", in: environment)
    return .failure
  }
}

/// A source of server-sent events: the data of each event is written as it arrives. A connection that ends is opened
/// again if the method is safe.
struct EventExchange {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let report =
      invocation.isQuiet
      ? nil : ConnectionReport { [environment] message in Command.complain(message, in: environment) }
    let source = session.eventSourceRequest(request, interceptor: report)
    if invocation.authentication == .digest, let credentials = invocation.credentials {
      source.authenticate(username: credentials.user, password: credentials.password ?? "")
    }
    let hops = [.everything, .headers].contains(invocation.shown) ? HopLog() : nil
    if let hops { source.eventMonitor(hops.log) }
    let palette = environment.palette(of: invocation)
    let isReadable = environment.showsReadableText(of: invocation)
    let names = environment.isOutputTerminal || invocation.shown == .everything
    // Serial, so that events keep their order; the main queue waits for the end.
    let queue = DispatchQueue(label: "af.events")
    let write = environment.writeOutput
    let writeHeads = { @Sendable () -> Bool in
      guard let hops else { return true }
      return write(Data(hops.takeText(palette, hasRequests: invocation.shown == .everything).utf8))
    }
    environment.interruption.onSignal { source.cancel() }
    let completion = await withCheckedContinuation { continuation in
      source.responseEvents(on: queue) { stream in
        switch stream.event {
        case .stream(.success(let event)):
          let hasHeads = writeHeads()
          let type = ReadableText.line(event.type)
          let head = names && event.type != "message" ? palette.paint("\(type): ", .name) : ""
          let data = isReadable ? ReadableText.lines(event.data) : event.data
          if !hasHeads || !write(Data((head + data + "\n").utf8)) { stream.cancel() }
        case .stream(.failure): break
        case .complete(let completion): continuation.resume(returning: completion)
        }
      }
    }
    _ = writeHeads()
    if completion.error != nil {
      let printer = ResponsePrinter(environment: environment, invocation: invocation)
      printer.writeRefused(source.data, completion.response)
    }
    if completion.response != nil { kept.store(from: session, invocation) }
    return finish(completion)
  }

  private func finish(_ completion: DataStreamRequest.Completion) -> ExitCode {
    // Without an error the server has ended the source; a cancellation means that the reader is gone.
    guard let error = completion.error, !error.isExplicitlyCancelledError else { return .success }
    Command.complain(FailureMessage.text(error, isVerbose: invocation.shown == .everything), in: environment)
    let status = completion.response.map { ExitCode(statusCode: $0.statusCode) } ?? .success
    return status == .success || !invocation.checksStatus ? .failure : status
  }
}

/// A report of the connections of an event source that failed and were followed by another one.
private final class ConnectionReport: RequestInterceptor {
  /// The reason of the last failure, until another connection begins. The queues of interceptors use it.
  private let failure = Mutex<String?>(nil)
  private let announce: @Sendable (String) -> Void

  init(_ announce: @escaping @Sendable (String) -> Void) { self.announce = announce }

  /// Called before each connection. The last failure of all is the failure of the request, so that it is not reported
  /// here.
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    let reason: String? = failure.withLock { failure in
      defer { failure = nil }
      return failure
    }
    if let reason { announce("\(reason) Connecting again.") }
    completion(.success(urlRequest))
  }

  /// Called after each connection. The request decides about the next one.
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    // The end of a stream is reported as a validation that has failed.
    if let error = error.asAFError, !error.isResponseValidationError {
      let reason = FailureMessage.text(error, isVerbose: false)
      failure.withLock { $0 = reason }
    }
    completion(.doNotRetry)
  }
}
