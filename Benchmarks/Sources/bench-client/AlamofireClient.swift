import Alamofire
import Dispatch
import Scorecard

/// A client that uses the public API of this package.
final class AlamofireClient: GetClient {
  private let session: Session
  private let url: URL
  private let queue = DispatchQueue(label: "bench.callbacks")
  private let token = Adapter { request, _, completion in
    var request = request
    request.headers.add(.authorization(bearerToken: "0123456789abcdef"))
    completion(.success(request))
  }
  private let order = Order(id: 12345, name: "Widget Mark II", amount: 3, tags: ["alpha", "beta"])

  init(_ setting: ClientSetting) {
    session = setting.session()
    url = setting.url
  }

  func data() async throws -> Data {
    try await session.request(url).serializingData().value
  }

  func item() async throws -> Item {
    try await session.request(url).serializingDecodable(Item.self).value
  }

  func everyday(_ row: Row) async throws -> Data {
    let request =
      switch row {
      case .adapted: session.request(url, interceptor: token)
      case .validated: session.request(url, interceptor: .retryPolicy).validate()
      case .posted: session.request(url, method: .post, parameters: order, encoder: .json)
      case .authenticated: session.request(url).authenticate(username: "someone", password: "secret")
      default: session.request(url)
      }
    return try await request.serializingData().value
  }

  func callback(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void) {
    session.request(url).responseData(queue: queue) { response in
      done(response.result.mapError { $0 })
    }
  }
}
