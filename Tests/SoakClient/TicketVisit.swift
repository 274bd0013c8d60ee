import Alamofire

/// Visits one URL after the other with the Kerberos ticket of the process, and without it, and says what came back.
///
///     SoakClient ticket <url> ...
struct TicketVisit {
  let urls: [String]

  init(_ words: [String]) throws {
    guard words.count >= 2 else {
      throw SoakClient.Failure(description: "usage: SoakClient ticket <url> ...")
    }
    urls = Array(words[1...])
  }

  /// One visit: with the ticket or not, and the status and the body of the answer.
  struct Visit: Codable {
    let url: String
    let hasTicket: Bool
    let status: Int?
    let body: String?
    let port: Int?
  }

  func run() async throws -> [Visit] {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = nil
    let session = Session(configuration: configuration)
    var visits: [Visit] = []
    for url in urls {
      for hasTicket in [true, false] {
        let request = session.request(url)
        if hasTicket { request.authenticate(username: "anna", password: "") }
        let response = await request.serializingString(emptyResponseCodes: [200]).response
        visits.append(
          Visit(
            url: url, hasTicket: hasTicket, status: response.response?.statusCode, body: response.value,
            port: response.metrics?.transactionMetrics.last?.localPort))
      }
    }
    return visits
  }
}
