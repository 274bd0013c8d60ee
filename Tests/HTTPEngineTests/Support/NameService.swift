import HTTPTestServer
import HTTPWire
import Synchronization

/// A name service over HTTPS (RFC 8484) with a table of its own. It records its questions.
final class NameService: Sendable {
  /// A question: a name, and 1 for an IPv4 address or 28 for an IPv6 address.
  struct Question: Hashable {
    let name: String
    let kind: UInt16
  }

  private let addresses: [String: [IPAddress]]
  private let calls = Mutex<[Question]>([])
  private let requests = Mutex<[RecordedRequest]>([])

  init(_ addresses: [String: [IPAddress]]) { self.addresses = addresses }

  var questions: [Question] { calls.withLock { $0 } }
  /// The requests with the questions.
  var received: [RecordedRequest] { requests.withLock { $0 } }

  var routes: Routes {
    Routes.none.adding("/dns-query", methods: ["POST"]) { [self] request, _ in
      requests.withLock { $0.append(request) }
      guard let question = Self.question(of: request.body) else { return .status(400) }
      calls.withLock { $0.append(question) }
      var reply = Reply.data(answer(to: request.body, question))
      reply.headers = [HTTPHeader(name: "Content-Type", value: "application/dns-message")]
      return reply
    }
  }

  /// Returns the one question of a message (RFC 1035 §4.1).
  private static func question(of message: [UInt8]) -> Question? {
    guard message.count > 12, message[4] == 0, message[5] == 1 else { return nil }
    var position = 12
    var labels: [String] = []
    while position < message.count, message[position] != 0 {
      let end = position + 1 + Int(message[position])
      guard end <= message.count else { return nil }
      labels.append(String(decoding: message[(position + 1)..<end], as: UTF8.self))
      position = end
    }
    guard position + 5 == message.count else { return nil }
    return Question(
      name: labels.joined(separator: "."),
      kind: UInt16(message[position + 1]) << 8 | UInt16(message[position + 2]))
  }

  private func answer(to message: [UInt8], _ question: Question) -> [UInt8] {
    let family: IPAddress.Family = question.kind == 28 ? .v6 : .v4
    let known = addresses[question.name]
    let found = known?.filter { $0.family == family } ?? []
    // A response, recursion available; 3 is a name that does not exist.
    var bytes = [
      message[0], message[1], 0x81, known == nil ? 0x83 : 0x80, 0, 1, 0, UInt8(found.count), 0, 0, 0, 0,
    ]
    bytes += message[12...]
    for address in found {
      bytes +=
        [0xC0, 12, 0, UInt8(question.kind), 0, 1, 0, 0, 0, 60, 0, UInt8(address.bytes.count)] + address.bytes
    }
    return bytes
  }
}

extension IPAddress {
  static let loopback4 = IPAddress(.v4, bytes: [127, 0, 0, 1])
  static let loopback6 = IPAddress(.v6, bytes: Array(repeating: 0, count: 15) + [1])
}
