import FoundationEssentials
import HTTPWire

/// A time, a URL and its stored responses. The clock is constant unless a test advances it.
struct CacheFixture {
  static let start: Int64 = 1_800_000_000

  var now = start
  var stored: [StoredResponse] = []
  let url = "http://a.test/x"

  /// Returns a response that was received at the start, and dated then unless a field differs.
  static func response(
    _ fields: [(String, String)] = [], status: Int = 200, body: String = "body",
    requestFields: [(String, String)] = [],
    url: String = "http://a.test/x", at time: Int64 = start, delay: Int64 = 0
  ) -> StoredResponse {
    var fields = fields.map { HTTPHeader(name: $0.0, value: $0.1) }
    if !fields.contains("Date") { fields.append(HTTPHeader(name: "Date", value: date(time))) }
    return StoredResponse(
      key: CacheKey(url) ?? CacheKey("", Origin(scheme: "http", host: "", port: nil)),
      fields: digests(requestFields), head: ResponseHead(status: status, fields: fields),
      body: Data(body.utf8),
      requestTime: time - delay, responseTime: time)
  }

  static func date(_ seconds: Int64) -> String { HTTPDate(secondsSince1970: seconds).text }

  static func digests(_ fields: [(String, String)]) -> FieldDigests { FieldDigests(of: headers(fields)) }

  static func headers(_ fields: [(String, String)]) -> [HTTPHeader] {
    fields.map { HTTPHeader(name: $0.0, value: $0.1) }
  }

  /// Returns the decision about a request some seconds after the start.
  static func decide(
    _ stored: StoredResponse..., after seconds: Int64 = 0, requestFields: [(String, String)] = [],
    method: String = "GET", policy: CacheDecision.Policy = .rules, mayRefresh: Bool = true
  ) -> Verdict {
    Verdict(
      CacheDecision.decide(
        CacheDecision.Question(
          method: method, fields: digests(requestFields), policy: policy, mayRefresh: mayRefresh),
        stored: stored, now: start + seconds))
  }

  static func answer(
    _ stored: StoredResponse, after seconds: Int64 = 0, requestFields: [(String, String)] = [],
    method: String = "GET",
    isConfirmed: Bool = false
  ) -> StoredAnswer? {
    StoredAnswer(
      of: stored, method: method, fields: headers(requestFields), isConfirmed: isConfirmed,
      now: start + seconds)
  }

  static func mayStore(
    _ fields: [(String, String)], status: Int = 200, method: String = "GET",
    requestFields: [(String, String)] = []
  ) -> Bool {
    StorageRules.mayStore(
      method: method, fields: headers(requestFields),
      head: ResponseHead(status: status, fields: headers(fields)))
  }
}

/// A decision in a form that can be compared.
enum Verdict: Equatable {
  case send, serve, serveAndRefresh, unavailable, gatewayTimeout
  case validate([String])

  init(_ decision: CacheDecision) {
    switch decision {
    case .send: self = .send
    case .serve: self = .serve
    case .serveAndRefresh: self = .serveAndRefresh
    case .validate(_, let fields), .validateVariants(_, let fields):
      self = .validate(fields.map { "\($0.name): \($0.value)" })
    case .unavailable: self = .unavailable
    case .gatewayTimeout: self = .gatewayTimeout
    }
  }
}

extension ResponseHead {
  func value(_ name: String) -> String? { block.fields.joinedValue(of: name) }
}

/// A hash function that returns its message. It replaces SHA-256, which this target does not have.
private struct PlainHashes: HashFunctions {
  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? {
    Array("\(algorithm)".utf8) + bytes
  }

  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
}

extension FieldDigests {
  init(of fields: [HTTPHeader]) { self.init(of: fields, hashes: PlainHashes()) }
}
