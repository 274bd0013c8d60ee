import Alamofire

/// Requests one URL after the other with the shared cookie storage, which outlives the process.
///
///     SoakClient cookies <authority> <url> ...
struct CookieRequests {
  let authority: String
  let urls: [String]

  init(_ words: [String]) throws {
    guard words.count >= 3 else {
      throw SoakClient.Failure(description: "usage: SoakClient cookies <authority> <url> ...")
    }
    authority = words[1]
    urls = Array(words[2...])
  }

  func run() async throws {
    var options = TransportOptions()
    options.trustStore = .file(authority)
    let session = Session(transportOptions: options)
    defer { withExtendedLifetime(session) {} }
    for url in urls {
      let response = await session.request(url).serializingData(emptyResponseCodes: [200]).response
      if let error = response.error { throw error }
    }
  }
}
