import Alamofire
import Dispatch

/// A client that uses the public API of this package.
final class AlamofireClient: GetClient {
  private let session: Session
  private let url: URL
  private let queue = DispatchQueue(label: "bench.callbacks")

  init(_ setting: ClientSetting) {
    let configuration = URLSessionConfiguration.af.default
    configuration.httpMaximumConnectionsPerHost = setting.concurrency
    var options = TransportOptions()
    options.trustStore = .file(setting.authority)
    options.httpVersions = setting.allowsHTTP2 ? .automatic : .http1Only
    session = Session(configuration: configuration, transportOptions: options)
    url = setting.url
  }

  func data() async throws -> Data {
    try await session.request(url).serializingData().value
  }

  func item() async throws -> Item {
    try await session.request(url).serializingDecodable(Item.self).value
  }

  func callback(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void) {
    session.request(url).responseData(queue: queue) { response in
      done(response.result.mapError { $0 })
    }
  }
}
