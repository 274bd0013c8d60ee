import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Delegates that do not answer a challenge", .timeLimit(.minutes(1))) struct SilentDelegateTests {
  @Test("The request times out by timeoutIntervalForResource")
  func timeLimit() async {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForResource = 0.2
    let session = Session.retained(
      fake: FakeTransport(.challenge()), configuration: configuration,
      observers: SessionObservers(delegate: SilentDelegate()))
    let error = await session.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
  }
}
