import Foundation
import HTTPWire

/// The scripted reply of a ``FakeTransport`` to one request.
struct FakeReply: Sendable {
  var status = 200
  var fields: [HTTPHeader] = []
  var chunks: [Data] = []
  /// Ends the transfer, after the head if there are chunks, otherwise before it.
  var failure: TransportFailure?
  var hasHead = true
  /// The metrics of a complete response.
  var metrics = TransferMetrics()
  /// Opened when the request has arrived. The reply then waits for the gate.
  var reached: Latch?
  var gate: Latch?

  static let ok = FakeReply()

  static func status(_ status: Int, _ body: String = "", headers: [(String, String)] = []) -> FakeReply {
    FakeReply(
      status: status, fields: headers.map { HTTPHeader(name: $0.0, value: $0.1) },
      chunks: body.isEmpty ? [] : [Data(body.utf8)])
  }

  static func text(_ body: String, type: String = "text/plain") -> FakeReply {
    .status(200, body, headers: [("Content-Type", type), ("Content-Length", "\(body.utf8.count)")])
  }

  static func json(_ body: String) -> FakeReply { .text(body, type: "application/json") }

  static func redirect(_ status: Int, to location: String) -> FakeReply {
    .status(status, headers: [("Location", location)])
  }

  static func failure(_ kind: TransportFailure.FailureKind) -> FakeReply {
    FakeReply(failure: TransportFailure(kind, "A failure of the script."), hasHead: false)
  }

  static func challenge(_ challenge: String = #"Basic realm="r""#) -> FakeReply {
    .status(401, headers: [("WWW-Authenticate", challenge)])
  }

  func held(by gate: Latch, reached: Latch? = nil) -> FakeReply {
    var copy = self
    copy.gate = gate
    copy.reached = reached
    return copy
  }

  var head: ResponseHead { ResponseHead(status: status, fields: fields) }
}
