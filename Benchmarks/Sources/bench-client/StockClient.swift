import Foundation
import FoundationNetworking
import Scorecard

/// A client that uses Foundation's `URLSession` with its default configuration. A larger limit than its six
/// connections per host makes it slower, because it then opens connections all the time.
///
/// `URLSession` trusts the system's certificates and has no option for others, so `Authority/authority.c` adds ours.
/// `URLSession` uses HTTP/2 with every TLS server that offers it, so the port decides.
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

  func everyday(_ row: Row) async throws -> Data { throw UnexpectedResponse() }

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
