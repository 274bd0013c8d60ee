import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ExchangeTests {
  static let url = URL(string: "http://localhost/a")

  static func head(status: Int = 200, _ fields: [HTTPHeader]) -> ResponseHead {
    ResponseHead(status: status, fields: fields)
  }

  @Test("The response is created from the head") func response() throws {
    let head = Self.head(
      status: 404, [HTTPHeader(name: "X-One", value: "1"), HTTPHeader(name: "content-type", value: "a/b")])
    let response = try #require(Exchange(url: Self.url, head: head).httpResponse)
    #expect(response.url == Self.url)
    #expect(response.statusCode == 404)
    #expect(response.value(forHTTPHeaderField: "x-one") == "1")
    #expect(response.mimeType == "a/b")
  }

  @Test("Repeated fields are joined under the first name") func repeatedFields() throws {
    let head = Self.head([
      HTTPHeader(name: "X-List", value: "a"), HTTPHeader(name: "Set-Cookie", value: "a=1; Path=/"),
      HTTPHeader(name: "x-list", value: "b"), HTTPHeader(name: "set-cookie", value: "b=2"),
      HTTPHeader(name: "X-LIST", value: "c"), HTTPHeader(name: "X-Empty", value: ""),
    ])
    let fields = try #require(
      Exchange(url: Self.url, head: head).httpResponse?.allHeaderFields as? [String: String])
    #expect(fields == ["X-List": "a, b, c", "Set-Cookie": "a=1; Path=/, b=2", "X-Empty": ""])
  }

  @Test("The response and the metrics are created once") func once() throws {
    let hop = Exchange.Hop(url: "http://localhost/a", metrics: TransferMetrics(), head: Self.head([]))
    let exchange = Exchange(url: Self.url, head: Self.head([]), hops: [hop])
    let metrics = try #require(exchange.metrics)
    let response = try #require(exchange.httpResponse)
    #expect(exchange.httpResponse === response)
    #expect(exchange.metrics === metrics)
    #expect(metrics.transactionMetrics.last?.response === response)
  }

  @Test("Threads receive the same objects") func concurrency() async {
    let hop = Exchange.Hop(url: "http://localhost/a", metrics: TransferMetrics(), head: Self.head([]))
    let exchange = Exchange(url: Self.url, head: Self.head([]), hops: [hop])
    let seen = await withTaskGroup(of: [ObjectIdentifier].self) { group in
      for _ in 0..<200 {
        group.addTask {
          [exchange.metrics.map(ObjectIdentifier.init), exchange.httpResponse.map(ObjectIdentifier.init)]
            .compactMap { $0 }
        }
      }
      return await group.reduce(into: Set<[ObjectIdentifier]>()) { $0.insert($1) }
    }
    #expect(seen.count == 1)
    #expect(seen.first?.count == 2)
  }

  @Test("Without head or URL there is no response") func missingHead() {
    #expect(Exchange(url: Self.url, head: nil).httpResponse == nil)
    #expect(Exchange(url: nil, head: Self.head([])).httpResponse == nil)
    #expect(Exchange(url: Self.url, head: Self.head([])).metrics == nil)
  }

  @Test("A given response object is used") func givenResponse() throws {
    let url = try #require(Self.url)
    let given = try #require(HTTPURLResponse(url: url, statusCode: 418, httpVersion: nil, headerFields: nil))
    let hop = Exchange.Hop(url: "http://localhost/a", metrics: TransferMetrics())
    let exchange = Exchange(url: url, head: Self.head([]), hops: [hop], response: given)
    #expect(exchange.httpResponse === given)
    #expect(exchange.metrics?.transactionMetrics.last?.response === given)
  }
}
