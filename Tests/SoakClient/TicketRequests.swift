import Alamofire

/// Requests each URL with the Kerberos ticket of the process and without it, and reports the responses.
///
///     SoakClient ticket <url> ...
struct TicketRequests {
  let urls: [String]

  init(_ words: [String]) throws {
    guard words.count >= 2 else {
      throw SoakClient.Failure(description: "usage: SoakClient ticket <url> ...")
    }
    urls = Array(words[1...])
  }

  /// One response, with the facts of its request.
  struct Response: Codable {
    let url: String
    let hasTicket: Bool
    let status: Int?
    let body: String?
    let port: Int?
  }

  func run() async throws -> [Response] {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = nil
    let session = Session(configuration: configuration)
    var responses: [Response] = []
    for url in urls {
      for hasTicket in [true, false] {
        let request = session.request(url)
        if hasTicket { request.authenticate(username: "anna", password: "") }
        let response = await request.serializingString(emptyResponseCodes: [200]).response
        responses.append(
          Response(
            url: url, hasTicket: hasTicket, status: response.response?.statusCode, body: response.value,
            port: response.metrics?.transactionMetrics.last?.localPort))
      }
    }
    return responses
  }
}
