import Alamofire
import Synchronization
import Testing

/// Mistakes of users and programs. The handler receives an error with a helpful message; the call itself does not
/// throw.
@Suite(.timeLimit(.minutes(5))) struct BadInputTests {
  /// Parameters that encoders cannot write.
  private struct Endless: Encodable, Sendable {
    let ratio = Double.infinity
  }

  /// A mistake, and its expected error.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let request: @Sendable (Session) -> DataRequest
    let isExpected: @Sendable (AFError) -> Bool
    /// Words that the message must contain.
    let words: [String]

    init(
      _ name: String, words: [String], _ request: @escaping @Sendable (Session) -> DataRequest,
      _ isExpected: @escaping @Sendable (AFError) -> Bool
    ) {
      testDescription = name
      self.words = words
      self.request = request
      self.isExpected = isExpected
    }

    /// Makes a mistake that ends with `.sessionTaskFailed` or `.createURLRequestFailed` and an error code.
    init(
      _ name: String, words: [String], code: URLError.Code,
      _ request: @escaping @Sendable (Session) -> DataRequest
    ) {
      self.init(name, words: words, request) { error in
        switch error {
        case .sessionTaskFailed(let error), .createURLRequestFailed(let error):
          (error as? URLError)?.code == code
        default: false
        }
      }
    }
  }

  private static let refusedPort = (try? Loopback.freePorts(1)[0]) ?? 1

  static let mistakes = [
    Mistake("an empty URL", words: ["valid URL"]) {
      $0.request("")
    } _: {
      $0.isInvalidURLError && $0.urlConvertible as? String == ""
    },
    Mistake("a URL with a space in its host", words: ["valid URL", "percent-encoded"]) {
      $0.request("http://exa mple.com:port/")
    } _: {
      $0.isInvalidURLError
    },
    Mistake("a path instead of a URL", words: ["/only/a/path", "absolute"], code: .unsupportedURL) {
      $0.request("/only/a/path")
    },
    Mistake("a URL of another scheme", words: ["ftp", "http"], code: .unsupportedURL) {
      $0.request("ftp://127.0.0.1/file")
    },
    Mistake("a URL without a host", words: ["host"], code: .badURL) { $0.request("http:///path") },
    Mistake("a GET with a body", words: ["GET", "body", "method"]) {
      $0.request("http://127.0.0.1:1/", parameters: ["a": 1], encoding: JSONEncoding.default)
    } _: { error in
      guard case .urlRequestValidationFailed(.bodyDataInGETRequest(let data)) = error else { return false }
      return data == Data(#"{"a":1}"#.utf8)
    },
    Mistake("parameters that are not JSON", words: ["JSON"]) {
      $0.request(
        "http://127.0.0.1:1/", method: .post, parameters: ["ratio": Double.nan],
        encoding: JSONEncoding.default)
    } _: { error in
      guard case .parameterEncodingFailed(.jsonEncodingFailed) = error else { return false }
      return error.isParameterEncodingError
    },
    Mistake("values that are not JSON", words: ["parameters", "ratio"]) {
      $0.request("http://127.0.0.1:1/", method: .post, parameters: Endless(), encoder: .json)
    } _: { error in
      guard case .parameterEncodingFailed(.jsonEncodingFailed(let inner)) = error else { return false }
      return inner is EncodingError
    },
    Mistake("an array as a form", words: ["array"]) {
      $0.request("http://127.0.0.1:1/", method: .post, parameters: [1, 2, 3])
    } _: { error in
      guard case .parameterEncoderFailed(.encoderFailed) = error else { return false }
      return true
    },
    Mistake("a header value with a line break", words: ["X-Evil"], code: .badURL) {
      $0.request("http://127.0.0.1:1/", headers: ["X-Evil": "a\r\nX-Injected: b"])
    },
    Mistake("a header name with a space", words: ["X Evil"], code: .badURL) {
      $0.request("http://127.0.0.1:1/", headers: ["X Evil": "a"])
    },
    Mistake("a method that is none", words: ["G ET"], code: .badURL) {
      $0.request("http://127.0.0.1:1/", method: HTTPMethod(rawValue: "G ET"))
    },
    Mistake("a host that does not exist", words: ["no-such-host.invalid", "DNS"], code: unknownHost) {
      $0.request("http://no-such-host.invalid/")
    },
    Mistake("a port that nobody listens on", words: ["127.0.0.1", "port"], code: .cannotConnectToHost) {
      $0.request("http://127.0.0.1:\(refusedPort)/")
    },
  ]

  /// On a machine without a network, the error names that.
  private static let unknownHost: URLError.Code =
    NetworkReachabilityManager.default?.isReachable == false ? .notConnectedToInternet : .cannotFindHost

  @Test("The handler receives a helpful error", arguments: mistakes)
  func handler(mistake: Mistake) async throws {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    let calls = Mutex(0)
    let response = await withCheckedContinuation { continuation in
      _ = mistake.request(session).response(queue: DispatchQueue(label: "handler")) { response in
        let isFirst = calls.withLock { calls in
          calls += 1
          return calls == 1
        }
        if isFirst { continuation.resume(returning: response) }
      }
    }
    #expect(response.response == nil)
    let error = try #require(response.error)
    #expect(mistake.isExpected(error), "\(error)")
    let sentence = try #require(error.errorDescription)
    for word in mistake.words { #expect(sentence.contains(word)) }
    #expect(sentence.split(separator: " ").count >= 5)
    #expect(!sentence.contains("could not be completed") && !sentence.contains(" error 1."))
    #expect(error.localizedDescription == sentence)
    #expect(calls.withLock { $0 } == 1)
  }

  @Test("An awaited response throws the error", arguments: mistakes)
  func awaitedResponse(mistake: Mistake) async {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    let request = mistake.request(session)
    let data = await request.serializingData().response
    #expect(data.error.map(mistake.isExpected) == true)
    let text = await request.serializingString().result
    #expect(throws: AFError.self) { try text.get() }
    #expect(request.isFinished)
  }

  @Test("A session works after mistakes") func sessionAfterMistakes() async throws {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    let tasks = Self.mistakes.map { $0.request(session).serializingData() }
    var kinds: [Bool] = []
    for (task, mistake) in zip(tasks, Self.mistakes) {
      kinds.append(await task.response.error.map(mistake.isExpected) == true)
    }
    #expect(kinds.allSatisfy { $0 })
  }
}
