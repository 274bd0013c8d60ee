import Alamofire
import HTTPWire
import Testing

@testable import AFCommand

@Suite("Tables of timings") struct TimingTableTests {
  /// Returns the phases of a request, with their times in whole milliseconds.
  private func phases(_ change: (inout TransferMetrics.Values) -> Void) throws -> [String] {
    var values = TransferMetrics.Values()
    values.start = 1_000
    values.requestStart = 5_000
    values.responseStart = 25_000
    values.end = 26_000
    change(&values)
    let hop = Exchange.Hop(
      url: "http://a.test/x", method: "POST", metrics: TransferMetrics(values: values),
      head: ResponseHead(status: 413))
    let metrics = try #require(Exchange(url: nil, head: nil, hops: [hop]).metrics)
    return TimingTable(metrics).hops.flatMap(\.phases)
      .map { "\($0.name) \(Int($0.start.rounded())) to \(Int($0.end.rounded()))" }
  }

  @Test("A request that was sent is followed by the wait for the response") func wholeRequest() throws {
    let phases = try phases { $0.requestEnd = 15_000 }
    #expect(phases == ["request 5 to 15", "waiting 15 to 25", "response 25 to 26"])
  }

  @Test("A request that a response has stopped was sent until then") func earlyResponse() throws {
    #expect(try phases { _ in } == ["request 5 to 25", "response 25 to 26"])
  }
}
