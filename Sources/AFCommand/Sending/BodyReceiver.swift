import Alamofire
import Foundation

/// The body of a response on its way: it is shown, written as it arrives, saved in a file, or refused.
final class BodyReceiver: Sendable {
  private enum Mode {
    /// The head has not been received.
    case waiting
    /// Collected, to be laid out as a whole; with the values of a stream that may be lines of JSON.
    case collecting(Data, JSONValues?)
    case writing
    case saving(SavedFile)
    case discarding
  }

  private struct State {
    var mode = Mode.waiting
    /// Whether the request was cancelled because its body must not reach the terminal, or the file is complete.
    var isRefused = false
    var failure: String?
    /// The head of a body that is collected.
    var response: HTTPURLResponse?
    /// The media type and the charset of the body.
    var contentType: String?
    /// The decoder of text on a terminal; `nil` before its charset is known.
    var decoder: TextDecoder?
    /// The beginning of text whose charset is not known yet.
    var undecided = Data()
    /// Whether the last byte on the terminal ended its line.
    var endsLine = true
    /// The path of the saved file.
    var path: String?
    /// Whether what is missing of the file can be appended later.
    var isContinuable = false
    /// Whether the server sends less than what is missing.
    var isPart = false
    /// Whether the body is not saved because of its status.
    var isUnsaved = false
    /// Replaces control characters on a terminal.
    var readable = ReadableStream()
    /// The bytes of the part that have not been received; `nil` if the file is not continued.
    var missing: Int64?
  }

  /// Larger bodies are not laid out.
  private static let layoutLimit = 10_000_000

  private let printer: ResponsePrinter
  private let resumption: Resumption?
  private let meter: ProgressMeter?
  private let request: URLRequest
  private let sentBody: SentBody
  private let hops: HopLog?
  /// The use of the body and its file, for the body's queue and the main thread.
  private let state = Mutex(State())

  /// Makes the receiver of the response to a request.
  ///
  /// - Parameters:
  ///   - request: The request, for the display of its body.
  ///   - hops:    The requests as they are sent, shown before a body that is written as it arrives; `nil` if they are
  ///              not shown.
  init(
    _ printer: ResponsePrinter, _ resumption: Resumption?, _ meter: ProgressMeter?, request: URLRequest,
    sentBody: SentBody, hops: HopLog?
  ) {
    self.hops = hops
    self.request = request
    self.sentBody = sentBody
    self.printer = printer
    self.resumption = resumption
    self.meter = meter
  }

  private var invocation: Invocation { printer.invocation }

  // MARK: Events

  /// Called once, before the body. Returns whether the body is to be read.
  func begin(_ response: HTTPURLResponse) -> Bool {
    meter?.beginResponse()
    let contentType = response.value(forHTTPHeaderField: "Content-Type")
    state.withLock { $0.contentType = contentType }
    if invocation.output != nil { return beginSaving(response) }
    guard printer.writesBody else {
      guard printer.waitsForHops || printer.begin(response) else { return stop() }
      state.withLock { $0.mode = .discarding }
      return true
    }
    if printer.lays(out: response) {
      guard printer.waitsForHops || printer.begin(response) else { return stop() }
      state.withLock { state in
        // The end of a body with a length is near.
        let mayBeLines = response.expectedContentLength < 0 && BodyText.isJSON(contentType)
        state.mode = .collecting(Data(), mayBeLines ? JSONValues() : nil)
        state.response = response
      }
      return true
    }
    return beginWriting(response)
  }

  private func beginWriting(_ response: HTTPURLResponse) -> Bool {
    guard writeHeads(response) else { return stop() }
    guard !printer.refuses(response) else {
      refuse(response, size: response.expectedContentLength)
      return false
    }
    if !printer.showsOnlyBody { printer.write(Data("\n".utf8)) }
    state.withLock { $0.mode = .writing }
    return true
  }

  /// Writes the heads before a body that is written as it arrives. Returns whether they were written.
  private func writeHeads(_ response: HTTPURLResponse) -> Bool {
    finishMeter()
    if let hops { printer.writeHops(hops.hops, sentBody, request) }
    return printer.begin(response)
  }

  /// Writes the beginning of a body that is too long for a layout or more than one value, after its heads. Returns
  /// whether it was written.
  private func writeCollected(_ body: Data, _ response: HTTPURLResponse?) -> Bool {
    if printer.waitsForHops, let response {
      guard writeHeads(response) else { return stop() }
    } else {
      finishMeter()
    }
    if !printer.showsOnlyBody { printer.write(Data("\n".utf8)) }
    return write(body)
  }

  /// Ends the progress of a body that is about to be written to the terminal on which it is drawn.
  private func finishMeter() {
    if printer.environment.hasOutputTerminal { meter?.finish() }
  }

  /// Called for one chunk at a time. Returns whether the body is to be read further.
  func add(_ data: Data) -> Bool {
    enum Use { case none, write(Data), writeCollected(Data, HTTPURLResponse?), fail }
    let use: Use = state.withLock { state in
      switch state.mode {
      case .collecting(var body, var values):
        // Not copied for each chunk, because no other reference is left.
        state.mode = .writing
        body += data
        values?.add(data)
        if body.count > Self.layoutLimit || values?.areSeveral == true {
          return .writeCollected(body, state.response)
        }
        state.mode = .collecting(body, values)
        return .none
      case .saving(let file):
        if let missing = state.missing {
          guard data.count <= missing else {
            state.failure = Resumption.excess
            state.mode = .discarding
            return .fail
          }
          state.missing = missing - Int64(data.count)
        }
        do throws(SavedFile.Failure) {
          try file.write(data)
          return .none
        } catch {
          state.failure = error.sentence
          state.mode = .discarding
          return .fail
        }
      case .writing: return .write(data)
      case .waiting, .discarding: return .none
      }
    }
    switch use {
    case .none: return true
    case .fail: return false
    case .write(let data): return write(data)
    case .writeCollected(let body, let response): return writeCollected(body, response)
    }
  }

  /// Writes bytes. On a terminal they are decoded, or refused if they are binary: the media type does not always tell.
  /// Returns whether they were written.
  ///
  /// - Parameter isEnd: Whether no more bytes follow.
  private func write(_ data: Data, isEnd: Bool = false) -> Bool {
    var data = data
    if printer.isTerminal {
      guard let text = decoded(data, isEnd: isEnd) else {
        refuse(nil, size: -1)
        return false
      }
      data = Data(text.utf8)
    }
    let shown = printer.isReadable ? state.withLock { $0.readable.add(data) } : data
    if printer.write(shown) {
      if let last = shown.last { state.withLock { $0.endsLine = last == UInt8(ascii: "\n") } }
      return true
    }
    return stop()
  }

  /// Ends the request because its output cannot be written, such as to a pipe whose reader is gone.
  private func stop() -> Bool {
    state.withLock { state in
      state.isRefused = true
      state.mode = .discarding
    }
    return false
  }

  /// Returns the next bytes as text; `nil` if they are binary. They are held back until their charset is known.
  private func decoded(_ data: Data, isEnd: Bool) -> String? {
    let present = state.withLock { $0.decoder }
    if let present, present.hasWideUnits || !data.contains(0) { return present.decode(data) }
    guard present == nil else { return nil }
    let (type, start) = state.withLock { state in
      state.undecided += data
      return (state.contentType, state.undecided)
    }
    let isKnown =
      isEnd || TextCharset.label(ofContentType: type) != nil
      || TextCharset.isLabelKnown(start, contentType: type)
    guard isKnown else { return "" }
    state.withLock { $0.undecided = Data() }
    let charset = printer.charset(type, start) ?? .utf8
    guard charset.hasWideUnits || !start.contains(0), let decoder = TextDecoder(charset) else { return nil }
    state.withLock { $0.decoder = decoder }
    return decoder.decode(start)
  }

  /// Writes the text whose charset the rest of the body could have named. Called at the end of the body.
  private func writeUndecided() {
    let isUndecided = state.withLock { state in
      if case .writing = state.mode { !state.undecided.isEmpty } else { false }
    }
    if isUndecided { _ = write(Data(), isEnd: true) }
  }

  private func refuse(_ response: HTTPURLResponse?, size: Int64) {
    let isFirst = state.withLock { state in
      defer {
        state.isRefused = true
        state.mode = .discarding
      }
      return !state.isRefused
    }
    if isFirst { printer.writeRefusal(response, size: size) }
  }

  // MARK: Files

  private func beginSaving(_ response: HTTPURLResponse) -> Bool {
    printer.beginSaving(response)
    switch resumption?.finding(response) ?? .unrelated {
    case .rest(let total):
      meter?.continues(at: resumption?.offset ?? 0)
      return save(response, isContinued: true, total: total)
    case .complete:
      complete()
      return false
    case .refused(let reason):
      discard(reason)
      return false
    case .unrelated:
      // The page of an error is not the file.
      guard (200..<300).contains(response.statusCode) else {
        discard(nil)
        state.withLock { $0.isUnsaved = true }
        return true
      }
      // Of the statuses of success, only 200 is the whole file instead of its rest.
      if resumption?.requestsRest == true, response.statusCode != 200 {
        discard(Resumption.otherAnswer)
        return false
      }
      // A file that exists is not replaced by a part of it, unless the arguments have asked for that part.
      if response.statusCode == 206, request.value(forHTTPHeaderField: "Range") == nil {
        discard(Resumption.otherPart)
        return false
      }
      return save(response, isContinued: false)
    }
  }

  /// Ends the request for the rest of a file that is complete.
  private func complete() {
    do throws(SavedFile.Failure) {
      try resumption?.complete()
      state.withLock { state in
        state.mode = .discarding
        state.isRefused = true
        if case .file(let path) = invocation.output { state.path = path }
      }
    } catch {
      discard(error.sentence)
    }
  }

  private func discard(_ failure: String?) {
    state.withLock { state in
      state.mode = .discarding
      state.failure = failure
    }
  }

  /// Saves the body of a response.
  ///
  /// - Parameter total: The length of the file that is continued, if it is known.
  private func save(_ response: HTTPURLResponse, isContinued: Bool, total: Int64? = nil) -> Bool {
    state.withLock { state in
      do throws(SavedFile.Failure) {
        let file = try open(response, isContinued: isContinued)
        state.isContinuable = isContinued || file.record(response)
        state.path = file.path
        let range = isContinued ? response.af.contentRange : nil
        state.missing = range?.bounds.map { Int64($0.count) }
        if let end = range?.bounds?.upperBound, let total { state.isPart = end < total }
        state.mode = .saving(file)
        return true
      } catch {
        state.failure = error.sentence
        state.mode = .discarding
        return false
      }
    }
  }

  private func open(_ response: HTTPURLResponse, isContinued: Bool) throws(SavedFile.Failure) -> SavedFile {
    let calls = printer.environment.fileCalls
    if let resumption { return try resumption.open(calls, isContinued: isContinued) }
    return switch invocation.output {
    case .file(let path): try SavedFile(path: path, calls: calls)
    case .suggestedName, nil:
      try SavedFile(
        suggestedName: response.suggestedFilename, folder: printer.environment.folder, calls: calls)
    }
  }

  // MARK: The end

  private struct End {
    /// The text that was held back for the next bytes.
    var held = Data()
    var body: Data?
    var isWaiting = false
    var lacksLineEnd = false
    var isRefused: Bool
    var isUnsaved: Bool
    var failure: String?
    var path: String?
    var isContinuable: Bool
  }

  /// Called after the last chunk: shows what was collected, and returns the outcome.
  func finish(_ response: AFDataResponse<Data?>) -> Delivery.DeliveryOutcome {
    // The head of a redirect that is not followed arrives with the end.
    let isLate = state.withLock { state in
      if case .waiting = state.mode { true } else { false }
    }
    if isLate, response.error == nil, let head = response.response, begin(head), let data = response.data {
      _ = add(data)
    }
    writeUndecided()
    let end = takeEnd(response)
    if !end.held.isEmpty { printer.write(end.held) }
    if end.lacksLineEnd { printer.write(Data("\n".utf8)) }
    let error = end.isRefused || end.failure != nil ? nil : response.error
    if let hops, end.body != nil || end.isWaiting || !printer.writesBody {
      printer.writeHops(hops.hops, sentBody, request, endingWith: response.response)
    }
    if let body = end.body, error == nil || !body.isEmpty {
      if !printer.showsOnlyBody { printer.write(Data("\n".utf8)) }
      printer.writeBody(body, response.response, isWhole: error == nil)
    }
    printer.writeTrailers(response.trailers)
    let failure =
      end.failure ?? error.map { FailureMessage.text($0, isVerbose: invocation.shown == .everything) }
    if let path = end.path {
      printer.reportSaved(path, isComplete: failure == nil, isContinuable: end.isContinuable)
    }
    return Delivery.DeliveryOutcome(
      response: response.response, metrics: response.metrics, failure: failure,
      isComplete: end.isRefused && end.path != nil, isUnsaved: end.isUnsaved)
  }

  /// Returns the end of the body, after which no more bytes are received.
  private func takeEnd(_ response: AFDataResponse<Data?>) -> End {
    state.withLock { state in
      var end = End(
        isRefused: state.isRefused, isUnsaved: state.isUnsaved, failure: state.failure, path: state.path,
        isContinuable: state.isContinuable)
      if end.failure == nil, response.error == nil, state.isPart || state.missing ?? 0 > 0 {
        end.failure = "The server sent only a part of what is missing."
      }
      if printer.isTerminal, case .writing = state.mode {
        let rest = Data((state.decoder?.finish() ?? "").utf8)
        end.held = printer.isReadable ? state.readable.add(rest) + state.readable.finish() : rest
        end.lacksLineEnd = end.held.last.map { $0 != UInt8(ascii: "\n") } ?? !state.endsLine
      }
      switch state.mode {
      case .collecting(let body, _): end.body = body
      case .waiting: end.isWaiting = true
      case .saving(let file):
        guard end.failure == nil, response.error == nil else {
          file.flush()
          break
        }
        do throws(SavedFile.Failure) { try file.finish() } catch { end.failure = error.sentence }
      case .writing, .discarding: break
      }
      state.mode = .discarding
      return end
    }
  }
}
