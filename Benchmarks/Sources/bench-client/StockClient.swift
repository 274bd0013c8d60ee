import Foundation
import FoundationNetworking

/// Foundation's `URLSession` as it comes: default configuration, nothing around it. More connections per
/// host than the six of the default only make it slower, since it then opens new ones all the time.
///
/// It trusts the system's certificates and cannot be told otherwise (`Authority/authority.c` lends it
/// ours), and speaks HTTP/2 whenever a TLS server does: the port decides.
final class StockClient: GetClient {
  private let session: URLSession
  private let url: URL

  init(_ setting: ClientSetting) {
    session = URLSession(configuration: .default)
    url = setting.url
  }

  func data() async throws -> Data {
    let (data, response) = try await session.data(from: url)
    try Self.check(response)
    return data
  }

  func item() async throws -> Item {
    try JSONDecoder().decode(Item.self, from: await data())
  }

  func callback(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void) {
    session.dataTask(with: url) { data, response, error in
      done(
        Result {
          if let error { throw error }
          try Self.check(response)
          return data ?? Data()
        })
    }.resume()
  }

  private static func check(_ response: URLResponse?) throws {
    guard let response = response as? HTTPURLResponse, response.statusCode == 200 else {
      throw UnexpectedResponse()
    }
  }
}
