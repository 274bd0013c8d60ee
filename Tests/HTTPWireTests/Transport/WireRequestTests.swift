import FoundationEssentials
import HTTPWire
import Testing

@Suite("Copies of a request") struct WireRequestTests {
  private final class Sink: BodySink {
    func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? { nil }
    func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception { .more }
    func finish() -> TransportFailure? { nil }
  }

  private let plain = WireRequest(
    url: "https://a.example/", origin: Origin(scheme: "https", host: "a.example", port: 443),
    profile: ConnectionProfile())

  /// A request with properties that all differ from their defaults.
  private var full: WireRequest {
    plain.changing { parts in
      parts.method = "PUT"
      parts.isIdempotent = true
      parts.fields = [HTTPHeader(name: "Accept", value: "*/*")]
      parts.body = .bytes(Data([1]))
      parts.sink = Sink()
      parts.idleTimeout = .seconds(5)
      parts.deadline = MonotonicTime(nanoseconds: 5)
      parts.priority = 1
      parts.isQuestion = true
      parts.login = ConnectionLogin(
        scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "x"))
      parts.alternative = AlternativeService(host: "b.example", port: 443)
      parts.addresses = KnownAddresses(host: "a.example", port: 443, addresses: [])
      parts.trailers = RequestTrailers(names: ["X-Digest"]) { _ in }
      parts.wireObserver = WireObservers([])
    }
  }

  private func parts(of request: WireRequest) -> [String: String] {
    let children = Mirror(reflecting: request.parts).children
    return Dictionary(uniqueKeysWithValues: children.map { ($0.label ?? "", String(reflecting: $0.value)) })
  }

  private func differences(_ first: WireRequest, _ second: WireRequest) -> Set<String> {
    let (first, second) = (parts(of: first), parts(of: second))
    return Set(first.keys.filter { first[$0] != second[$0] })
  }

  @Test("A copy preserves every property that is not changed") func changing() {
    let full = full
    // A new property has to be set above, so that its copies are tested.
    #expect(differences(plain, full) == Set(parts(of: full).keys).subtracting(["url", "origin", "profile"]))
    #expect(differences(full, full.changing { $0.method = "GET" }) == ["method"])
    #expect(differences(full, full.changing { _ in }) == [])
  }

  @Test(
    "The fields of interest are noted, however their names are written",
    arguments: [
      ("Host", RequestMarks.host), ("range", .range), ("EXPECT", .expect), ("upGRADE", .upgrade),
      ("cache-control", .cacheControl), ("Authorization", .credentials),
      ("proxy-authorization", .credentials),
      ("Hosts", nil), ("Hose", nil), ("Cache_Control", nil), ("", nil),
    ] as [(String, RequestMarks?)])
  func marks(name: String, mark: RequestMarks?) {
    let request = plain.changing { $0.fields = [HTTPHeader(name: "Accept", value: "*/*")] }
    #expect(request.marks == [])
    let marked = request.changing { $0.fields.append(HTTPHeader(name: name, value: "x")) }
    #expect(marked.marks == mark ?? [])
    // They belong to the fields, so they go with them.
    #expect(marked.changing { $0.fields.removeLast() }.marks == [])
  }

  @Test("A redirect drops the options of the connection and preserves the others") func redirected() {
    let full = full
    let next = full.redirected { $0.url = "https://c.example/" }
    #expect(differences(full, next) == ["url", "login", "alternative", "addresses"])
    #expect(next.login == nil && next.alternative == nil && next.addresses == nil)
  }

  @Test("An alternative service is named in Alt-Used") func alternative() {
    let service = AlternativeService(host: "b.example", port: 8443)
    let request = plain.using(service)
    #expect(request.alternative == service)
    #expect(request.fields == [HTTPHeader(name: "Alt-Used", value: "b.example:8443")])
  }
}
