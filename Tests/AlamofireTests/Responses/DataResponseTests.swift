import Alamofire
import Foundation
import HTTPWire
import Testing

@Suite struct DataResponseTests {
  enum Failure: Error, Equatable { case first, second }

  static func request(body: String? = nil, _ fields: [String: String] = [:]) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: "http://localhost/post?q=1")))
    request.httpMethod = "POST"
    request.allHTTPHeaderFields = fields
    request.httpBody = body.map { Data($0.utf8) }
    return request
  }

  static func exchange(_ fields: [HTTPHeader] = []) -> Exchange {
    var values = TransferMetrics.Values()
    values.start = 1_000
    values.end = 250_000
    let head = ResponseHead(status: 201, fields: fields)
    let hop = Exchange.Hop(url: "http://localhost/post", metrics: TransferMetrics(values: values), head: head)
    return Exchange(url: URL(string: "http://localhost/post"), head: head, hops: [hop])
  }

  static func response(
    _ result: Result<Int, Failure> = .success(1), data: Data? = nil, _ fields: [HTTPHeader] = []
  ) throws -> DataResponse<Int, Failure> {
    DataResponse(
      request: try request(), origin: .exchange(exchange(fields)), data: data, serializationDuration: 0.5,
      result: result)
  }

  @Test("Response and metrics come from the exchange") func responseAndMetrics() throws {
    let exchange = Self.exchange()
    let response = DataResponse<Int, Failure>(
      request: nil, origin: .exchange(exchange), data: nil, result: .success(1))
    #expect(response.response === exchange.httpResponse)
    #expect(response.metrics === exchange.metrics)
    #expect(response.response?.statusCode == 201)
    #expect(response.serializationDuration == 0)
    let without = DataResponse<Int, Failure>(
      request: nil, origin: .exchange(nil), data: nil, result: .failure(.first))
    #expect(without.response == nil)
    #expect(without.metrics == nil)
  }

  @Test("Given properties are returned unchanged") func properties() throws {
    let exchange = Self.exchange()
    let response = AFDataResponse<String>(
      request: try Self.request(), response: exchange.httpResponse, data: Data([1]),
      metrics: exchange.metrics,
      serializationDuration: 2, result: .success("x"))
    #expect(response.response === exchange.httpResponse)
    #expect(response.metrics === exchange.metrics)
    #expect(response.data == Data([1]))
    #expect(response.serializationDuration == 2)
    #expect(response.value == "x")
    #expect(response.error == nil)
  }

  @Test("Transformations change the result only") func transformations() throws {
    let success = try Self.response(.success(1), data: Data([7]))
    let failure = try Self.response(.failure(.first), data: Data([7]))
    let mapped = success.map { "\($0)" }
    #expect(mapped.value == "1")
    #expect(mapped.request == success.request)
    #expect(mapped.response === success.response)
    #expect(mapped.metrics === success.metrics)
    #expect(mapped.data == Data([7]))
    #expect(mapped.serializationDuration == 0.5)
    #expect(failure.map { "\($0)" }.error == .first)
    #expect(success.tryMap { $0 + 1 }.value == 2)
    #expect(success.tryMap { _ -> Int in throw Failure.second }.error as? Failure == .second)
    #expect(failure.tryMap { $0 + 1 }.error as? Failure == .first)
    #expect(failure.mapError { _ in URLError(.badURL) }.error == URLError(.badURL))
    #expect(success.mapError { _ in URLError(.badURL) }.value == 1)
    #expect(failure.tryMapError { _ in URLError(.badURL) }.error as? URLError == URLError(.badURL))
    #expect(failure.tryMapError { _ -> URLError in throw Failure.second }.error as? Failure == .second)
    #expect(success.tryMapError { _ -> URLError in throw Failure.second }.value == 1)
  }

  @Test("The description is the result") func description() throws {
    #expect(try Self.response(.success(1)).description == "success(1)")
    #expect(try Self.response(.failure(.first)).description.hasPrefix("failure("))
    #expect(try "\(Self.response(.success(2)))" == "success(2)")
  }

  @Test("Without a request the debug description has two lines") func missingRequest() {
    let response = DataResponse<Int, Failure>(
      request: nil, origin: .exchange(Self.exchange()), data: nil, result: .success(1))
    #expect(response.debugDescription == "[Request]: None\n[Result]: success(1)")
  }

  @Test("The debug description has all parts") func debugDescription() throws {
    let request = try Self.request(
      body: " {\n  \"a\": 1\n}\n", ["x-b": "2", "X-a": "1", "Content-Type": "application/json"])
    let data = Data("\n<p>Hello</p>\r\n<p>You</p>\n".utf8)
    let fields = [HTTPHeader(name: "X-Z", value: "z"), HTTPHeader(name: "Content-Type", value: "text/html")]
    let response = DataResponse<Int, Failure>(
      request: request, origin: .exchange(Self.exchange(fields)), data: data, serializationDuration: 0.5,
      result: .success(1))
    #expect(
      response.debugDescription == """
        [Request]: POST http://localhost/post?q=1
            [Headers]:
                Content-Type: application/json
                X-a: 1
                x-b: 2
            [Body]:
                {
                  "a": 1
                }
        [Response]:
            [Status Code]: 201
            [Headers]:
                Content-Type: text/html
                X-Z: z
            [Body]:
                <p>Hello</p>
                <p>You</p>
        [Network Duration]: 0.25s
        [Serialization Duration]: 0.5s
        [Result]: success(1)
        """)
  }

  @Test("The debug description names missing parts") func missingParts() throws {
    let response = DataResponse<Int, Failure>(
      request: try Self.request(), origin: .exchange(nil), data: nil, result: .failure(.first))
    #expect(
      response.debugDescription == """
        [Request]: POST http://localhost/post?q=1
            [Headers]: None
            [Body]: None
        [Response]: None
        [Network Duration]: None
        [Serialization Duration]: 0.0s
        [Result]: \(response.result)
        """)
  }

  static let bodies: [(String?, Int, String)] = [
    ("application/octet-stream", 3, "    [Body]: 3 bytes\n"), (nil, 3, "    [Body]: 3 bytes\n"),
    ("text/plain", 100_001, "    [Body]: 100001 bytes\n"), ("text/plain", 0, "    [Body]: None\n"),
    ("application/xhtml+xml", 3, "    [Body]:\n        aaa\n"),
    ("application/JSON", 2, "    [Body]:\n        aa\n"),
  ]

  @Test("Only small texts are part of the debug description", arguments: bodies)
  func shownBodies(type: String?, count: Int, shown: String) throws {
    let fields = type.map { [HTTPHeader(name: "content-type", value: $0)] } ?? []
    let data = Data(repeating: UInt8(ascii: "a"), count: count)
    let text = try Self.response(data: data, fields).debugDescription
    #expect(text.components(separatedBy: "[Response]:").last?.contains(shown) == true)
  }

  @Test("A text at the limit is part of the debug description") func textAtLimit() throws {
    let data = Data(repeating: UInt8(ascii: "a"), count: 100_000)
    let text = try Self.response(data: data, [HTTPHeader(name: "Content-Type", value: "text/plain")])
      .debugDescription
    #expect(text.contains(String(repeating: "a", count: 100_000)))
  }

  @Test("A response is Sendable with its value") func sendable() {
    func send(_ value: some Sendable) {}
    send(DataResponse<Int, Failure>(request: nil, origin: .exchange(nil), data: nil, result: .success(1)))
  }
}
