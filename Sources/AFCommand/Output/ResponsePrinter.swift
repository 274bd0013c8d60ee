import Alamofire
import Foundation

/// Prints the requested parts of an exchange.
struct ResponsePrinter {
  let environment: Environment
  let invocation: Invocation

  /// The parts to print, after `automatic` has been resolved for a redirected output.
  private var shown: Invocation.Shown {
    switch invocation.shown {
    case .automatic: environment.isOutputTerminal ? .automatic : .body
    case .headers, .body, .everything: invocation.shown
    }
  }

  private var palette: Palette { environment.outputPalette }

  /// Writes the exchange, as far as it came.
  func write(_ response: AFDataResponse<Data>, request: URLRequest, isComplete: Bool) {
    switch shown {
    case .everything: writeHops(response, request)
    case .automatic, .headers: writeHead(response)
    case .body: break
    }
    guard isComplete, shown != .headers, let data = response.data else { return }
    if shown != .body { write("\n") }
    writeBody(data, response.response)
  }

  // MARK: Bodies that arrive

  /// Whether the body is among the parts to print.
  var writesBodies: Bool { shown != .headers && shown != .everything }

  /// Writes the head of a response whose body arrives later. Its version of HTTP is not known before the end.
  func begin(_ response: HTTPURLResponse) {
    guard shown == .automatic else { return }
    write(Head(response, version: "HTTP").text(palette) + "\n")
  }

  func write(_ data: Data) { environment.writeOutput(data) }

  // MARK: Heads

  private func writeHead(_ response: AFDataResponse<Data>) {
    guard let head = response.response else { return }
    let version = response.metrics?.transactionMetrics.last.map(Head.version) ?? "HTTP/1.1"
    write(Head(head, version: version).text(palette))
  }

  /// Requests that were sent and their responses in their order, an empty line between them.
  private func writeHops(_ response: AFDataResponse<Data>, _ request: URLRequest) {
    let hops = (response.metrics?.transactionMetrics ?? []).filter { $0.requestStartDate != nil }
    for (index, hop) in hops.enumerated() {
      if index > 0 { write("\n") }
      write(Head(hop).text(palette) + "\n")
      if hop.countOfRequestBodyBytesSent > 0, let body = request.httpBody {
        let type = hop.request.value(forHTTPHeaderField: "Content-Type")
        write(
          BodyText.format(body, contentType: type, palette: palette, width: environment.width) + "\n")
      }
      if let head = hop.response as? HTTPURLResponse {
        write(Head(head, version: Head.version(hop)).text(palette))
      }
    }
  }

  // MARK: Body

  /// Writes the body unchanged for a program, and in readable form for a terminal.
  private func writeBody(_ data: Data, _ response: HTTPURLResponse?) {
    guard environment.isOutputTerminal else { return environment.writeOutput(data) }
    write(
      BodyText.format(
        data, contentType: response?.value(forHTTPHeaderField: "Content-Type"), palette: palette,
        width: environment.width, text: { Self.text($0, response) }))
  }

  /// The bytes in the charset that the response names.
  private static func text(_ data: Data, _ response: HTTPURLResponse?) -> String? {
    guard response?.textEncodingName != nil else { return nil }
    return try? StringResponseSerializer().serialize(request: nil, response: response, data: data, error: nil)
  }

  private func write(_ text: String) {
    environment.writeOutput(Data(text.utf8))
  }
}
