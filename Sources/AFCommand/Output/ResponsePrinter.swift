import Alamofire
import Foundation

/// Prints the requested parts of an exchange.
struct ResponsePrinter: Sendable {
  let environment: Environment
  let invocation: Invocation

  private var palette: Palette { environment.palette(of: invocation) }
  private var layout: BodyText.Layout {
    BodyText.Layout(
      palette: palette, isLaidOut: invocation.laysOut(isTerminal: isTerminal),
      isReadable: environment.showsReadableText(of: invocation), width: environment.width)
  }

  var isTerminal: Bool { environment.isOutputTerminal }

  /// Whether control characters of bodies are replaced.
  var isReadable: Bool { environment.showsReadableText(of: invocation) }

  // MARK: Parts

  private var parts: Set<Invocation.Part> {
    switch invocation.shown {
    // Only the status.
    case .automatic where invocation.showsStatus: []
    // The response to a HEAD request has no body.
    case .automatic where invocation.effectiveMethod == "HEAD" && invocation.output == nil: [.head]
    case .automatic: isTerminal && invocation.output == nil ? [.head, .body] : [.body]
    case .headers: [.head]
    case .body: [.body]
    case .everything: Set(Invocation.Part.allCases)
    case .parts(let parts): parts
    }
  }

  private func shows(_ part: Invocation.Part) -> Bool { parts.contains(part) }

  private var showsHead: Bool { shows(.head) }

  /// Whether the body is among the parts to print.
  var writesBody: Bool { invocation.output == nil && shows(.body) }

  /// Whether anything is among the parts to print. A body in a file is not.
  var writesOutput: Bool { writesBody || !parts.subtracting([.body]).isEmpty }

  /// Whether only the body is shown.
  var showsOnlyBody: Bool { parts == [.body] }

  /// Whether requests are to be printed, with their responses. A request that is sent again is known only later.
  var waitsForHops: Bool { shows(.requestHead) || shows(.requestBody) }

  // MARK: Bodies

  /// Whether a body is shown as a whole. Bodies shown as a whole are JSON and XML on a terminal, and short bodies after
  /// heads that are known at the end.
  func lays(out response: HTTPURLResponse) -> Bool {
    let type = response.value(forHTTPHeaderField: "Content-Type")
    if BodyText.isStream(type) { return false }
    if waitsForHops, (0...Self.shortBody).contains(response.expectedContentLength) { return true }
    guard !refuses(response), invocation.changesText(isTerminal: isTerminal) else { return false }
    return BodyText.isJSON(type) || BodyText.isXML(type)
  }

  private static let shortBody: Int64 = 1_000_000

  /// Whether the body would fill a terminal with what is not text.
  func refuses(_ response: HTTPURLResponse) -> Bool {
    isTerminal && BodyText.isBinary(response.value(forHTTPHeaderField: "Content-Type"))
  }

  func writeRefusal(_ response: HTTPURLResponse?, size: Int64) {
    if !showsOnlyBody { write("\n") }
    let type = response?.value(forHTTPHeaderField: "Content-Type")
    write(palette.paint(BodyText.note(size, type, width: environment.width), .faint))
  }

  /// Writes a whole body: in readable form for a terminal, and for a program unchanged. With `--pretty`, JSON and XML
  /// are laid out for a program, too.
  ///
  /// - Parameter isWhole: Whether nothing is missing. The part of a body is not laid out.
  func writeBody(_ data: Data, _ response: HTTPURLResponse?, isWhole: Bool = true) {
    let type = response?.value(forHTTPHeaderField: "Content-Type")
    if isTerminal {
      let charset = charset(type, data)
      write(
        isWhole
          ? BodyText.format(data, contentType: type, layout: layout, charset: charset)
          : BodyText.plain(data, contentType: type, layout: layout, charset: charset))
    } else if isWhole, invocation.changesText(isTerminal: false),
      let text = BodyText.formatted(data, contentType: type, layout: layout)
    {
      write(text)
    } else {
      write(data)
    }
  }

  /// Writes the body of a response that is not what was requested, unless only heads are shown.
  func writeRefused(_ body: Data?, _ response: HTTPURLResponse?) {
    guard let body, invocation.shown != .headers else { return }
    if isTerminal, body.contains(0) || response.map(refuses) == true {
      writeRefusal(response, size: Int64(body.count))
    } else {
      writeBody(body, response)
    }
  }

  /// Returns the charset of a body by its head or its beginning; `nil` if nothing names one. An unknown one is reported
  /// on the standard error, and is read as UTF-8.
  func charset(_ contentType: String?, _ start: Data) -> TextCharset? {
    guard
      let label = TextCharset.label(ofContentType: contentType)
        ?? TextCharset.label(of: start, contentType: contentType)
    else { return nil }
    if let charset = TextCharset(label: label), TextDecoder(charset) != nil { return charset }
    Command.complain(
      "The charset '\(label)' of the body is not known here; the body is shown as UTF-8.", in: environment)
    return .utf8
  }

  /// Writes the trailer fields of a response after its body, if everything is shown.
  func writeTrailers(_ trailers: HTTPHeaders?) {
    guard invocation.shown == .everything, let trailers else { return }
    write("\n" + Head.lines(of: trailers.map { ($0.name, $0.value) }, palette))
  }

  // MARK: Heads

  /// Writes the head of a response before its body. Returns whether it was written, if it was asked for.
  func begin(_ response: HTTPURLResponse) -> Bool {
    showsHead ? write(Data(Head(response).text(palette).utf8)) : true
  }

  /// Writes the head of a response whose body is saved, if it was asked for.
  func beginSaving(_ response: HTTPURLResponse) {
    if showsHead, !waitsForHops { write(Head(response).text(palette)) }
  }

  /// Writes requests that were sent and their responses in their order: of all hops and attempts, or of the last one.
  ///
  /// - Parameter response: The last response; `nil` if there is none.
  func writeHops(
    _ all: [HopLog.Hop], _ body: SentBody, _ first: URLRequest, endingWith response: HTTPURLResponse?
  ) {
    writeHops(all, body, first)
    guard shows(.head), let last = all.last?.response else { return }
    // The last response is the result, unless it is a redirect that could not be followed.
    let isRedirect = last.isRedirect && invocation.redirects != .show
    let head = isRedirect ? last.masked : response.map { Head($0, version: last.version) } ?? last.masked
    write(head.text(palette))
  }

  /// Writes requests that were sent and their responses, but for the head of the last response, which is not over.
  func writeHops(_ all: [HopLog.Hop], _ body: SentBody, _ first: URLRequest) {
    let hops = invocation.shown == .everything ? all[...] : all.suffix(1)
    for (index, hop) in hops.enumerated() {
      let type = first.value(forHTTPHeaderField: "Content-Type")
      writeRequest(hop.request.masked, hop.hasBody ? body : .none, type: type)
      if index < hops.count - 1, shows(.head), let response = hop.response {
        write(response.masked.text(palette) + "\n")
      }
    }
  }

  /// Writes a request before its response.
  private func writeRequest(_ head: Head, _ body: SentBody, type: String?) {
    if shows(.requestHead) { write(head.text(palette) + "\n") }
    if shows(.requestBody) { write(text(of: body, type: type)) }
  }

  /// Writes a request that is not sent.
  func writeOffline(_ request: URLRequest, _ body: SentBody) {
    var length = request.httpBody?.count
    if length == nil, case .data(let data) = body { length = data.count }
    let type = request.value(forHTTPHeaderField: "Content-Type")
    let isWhole = !shows(.requestHead) && !shows(.requestBody)
    let head = Head(
      request, common: Session.headers(invocation), repeated: invocation.typedFields.repeated,
      bodyLength: length
    ).text(palette)
    if isWhole || shows(.requestHead) { write(head) }
    guard isWhole || shows(.requestBody), case let text = text(of: body, type: type), !text.isEmpty else {
      return
    }
    if isWhole || shows(.requestHead) { write("\n") }
    write(text.hasSuffix("\n\n") ? String(text.dropLast()) : text)
  }

  private func text(of body: SentBody, type: String?) -> String {
    switch body {
    case .none: ""
    case .data(let data):
      BodyText.format(Self.masked(data, type), contentType: type, layout: layout) + "\n"
    case .note(let note): palette.paint("(\(note))\n", .faint) + "\n"
    }
  }

  /// Returns the body of a request without its secrets. Only text has them: what cannot be read is not shown. Text that
  /// is not UTF-8 is shown with U+FFFD, and so it is masked in that form.
  private static func masked(_ body: Data, _ contentType: String?) -> Data {
    if let text = String(validating: body, as: UTF8.self) {
      return Data(Redaction.standard.body(text, contentType: contentType).utf8)
    }
    return BodyText.isText(contentType)
      ? Data(Redaction.standard.body(String(decoding: body, as: UTF8.self), contentType: contentType).utf8)
      : body
  }

  // MARK: Files

  /// Reports a file on the standard error.
  ///
  /// - Parameter isContinuable: Whether what is missing of the file can be appended to it.
  func reportSaved(_ path: String, isComplete: Bool, isContinuable: Bool = false) {
    if isComplete {
      if invocation.isQuiet { return }
      if invocation.output == .suggestedName || environment.isErrorTerminal {
        environment.writeError("Saved in \(ReadableText.line(path))\n")
      }
    } else {
      let advice =
        isContinuable && requestsRest ? "; 'af -c -o \(CurlCommand.quoted(path))' gets the rest" : ""
      environment.writeError(ReadableText.lines("The received part is in \(path)\(advice).\n"))
    }
  }

  /// Whether `-c` requests the missing bytes of the same file: it sends a GET without a body, for all the rest.
  private var requestsRest: Bool {
    invocation.effectiveMethod == "GET" && !invocation.hasBody && !invocation.hasRange
  }

  /// Returns whether the bytes were written.
  @discardableResult
  func write(_ data: Data) -> Bool { environment.writeOutput(data) }

  private func write(_ text: String) { _ = environment.writeOutput(Data(text.utf8)) }
}
