import HTTPTestServer
import HTTPWire
import Synchronization

/// A name service over HTTPS (RFC 8484) with its own table. It records its questions.
final class NameService: Sendable {
  /// A question: a name, and 1 for an IPv4 address or 28 for an IPv6 address.
  struct Question: Hashable {
    let name: String
    let kind: UInt16
  }

  private let addresses: Mutex<[String: [IPAddress]]>
  private let calls = Mutex<[Question]>([])
  /// The kind of the next question that is refused.
  private let refused = Mutex<UInt16?>(nil)
  private let requests = Mutex<[RecordedRequest]>([])
  /// The gate that holds the answers, all or those about one family.
  private let gate = Mutex<(Gate, IPAddress.Family?)?>(nil)
  private let fields = Mutex<[HTTPHeader]>([])
  /// The kinds of questions whose connections are broken once.
  private let resets = Mutex<Set<UInt16>>([])

  init(_ addresses: [String: [IPAddress]] = [:]) { self.addresses = Mutex(addresses) }

  /// Sets the addresses of a name from now on.
  func set(_ name: String, _ found: [IPAddress?]) {
    addresses.withLock { $0[name] = found.compactMap { $0 } }
  }

  /// Refuses the next question for an address of a family, as a service with a fault of its own.
  func refuse(_ family: IPAddress.Family) { refused.withLock { $0 = family == .v4 ? 1 : 28 } }

  /// Holds the answers from now on: all, or those about one family.
  func hold(_ family: IPAddress.Family? = nil, by gate: Gate) { self.gate.withLock { $0 = (gate, family) } }

  func holdNothing() { gate.withLock { $0 = nil } }

  /// Breaks the connection of the next question about each family.
  func reset() { resets.withLock { $0 = [1, 28] } }

  /// Adds a field to the responses.
  func add(_ field: HTTPHeader) { fields.withLock { $0.append(field) } }

  var questions: [Question] { calls.withLock { $0 } }
  /// The requests with the questions.
  var received: [RecordedRequest] { requests.withLock { $0 } }

  var routes: Routes {
    Routes.none.adding("/dns-query", methods: ["POST"]) { [self] request, _ in
      requests.withLock { $0.append(request) }
      let kind = Self.question(of: request.body)?.0.kind ?? 0
      if resets.withLock({ $0.remove(kind) != nil }) { return .reset }
      guard let answer = answer(to: request.body) else { return .status(400) }
      guard !takesRefusal(of: request.body) else { return .status(500) }
      var reply = Reply.data(answer)
      if let (gate, family) = gate.withLock({ $0 }), family == nil || Self.family(of: request.body) == family
      {
        reply.gate = gate
      }
      reply.headers =
        [HTTPHeader(name: "Content-Type", value: "application/dns-message")] + fields.withLock { $0 }
      return reply
    }
  }

  /// Returns whether the question of a message is the one that is refused.
  private func takesRefusal(of message: [UInt8]) -> Bool {
    refused.withLock { kind in
      guard let refused = kind, Self.question(of: message)?.0.kind == refused else { return false }
      kind = nil
      return true
    }
  }

  private static func family(of message: [UInt8]) -> IPAddress.Family? {
    question(of: message).map { $0.0.kind == 28 ? .v6 : .v4 }
  }

  /// Records the question of a message and returns the answer; `nil` for any other message.
  func answer(to message: [UInt8]) -> [UInt8]? {
    guard let (question, end) = Self.question(of: message) else { return nil }
    calls.withLock { $0.append(question) }
    let family: IPAddress.Family = question.kind == 28 ? .v6 : .v4
    let known = addresses.withLock { $0[question.name] }
    let found = known?.filter { $0.family == family } ?? []
    // A response, recursion available; 3 is a name that does not exist.
    var bytes = [
      message[0], message[1], 0x81, known == nil ? 0x83 : 0x80, 0, 1, 0, UInt8(found.count), 0, 0, 0, 0,
    ]
    bytes += message[12..<end]
    for address in found {
      bytes +=
        [0xC0, 12, 0, UInt8(question.kind), 0, 1, 0, 0, 0, 60, 0, UInt8(address.bytes.count)] + address.bytes
    }
    return bytes
  }

  /// Returns the one question of a message, and the position after it (RFC 1035 §4.1).
  private static func question(of message: [UInt8]) -> (Question, end: Int)? {
    guard message.count > 12, message[4] == 0, message[5] == 1 else { return nil }
    var position = 12
    var labels: [String] = []
    while position < message.count, message[position] != 0 {
      let end = position + 1 + Int(message[position])
      guard end <= message.count else { return nil }
      labels.append(String(decoding: message[(position + 1)..<end], as: UTF8.self))
      position = end
    }
    guard position + 5 <= message.count else { return nil }
    let kind = UInt16(message[position + 1]) << 8 | UInt16(message[position + 2])
    return (Question(name: labels.joined(separator: "."), kind: kind), position + 5)
  }
}

extension IPAddress {
  static let loopback4 = IPAddress(.v4, bytes: [127, 0, 0, 1])
  static let loopback6 = IPAddress(.v6, bytes: Array(repeating: 0, count: 15) + [1])
}
