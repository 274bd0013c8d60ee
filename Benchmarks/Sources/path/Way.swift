import Alamofire

/// A kind of request. Each kind executes other code of the library.
enum Way: String {
  case get, upload, download, retry
  case cacheHit = "cache-hit"
  case redirect, digest

  /// The path of the requests before the one that is measured. A cache hit needs a stored response.
  var warmup: String { self == .cacheHit ? "cache/60" : "get" }

  func send(by session: Session, to server: URL) async throws {
    switch self {
    case .get, .cacheHit:
      try await expect(session.request(server.appending(path: warmup)), status: 200)
    case .upload:
      try await expect(session.upload(Data("body".utf8), to: server.appending(path: "post")), status: 200)
    case .download:
      let file = try await session.download(server.appending(path: "bytes/100"))
        .serializingDownloadedFileURL().value
      try FileManager.default.removeItem(at: file)
    case .retry:
      let retrier = Retrier { _, _, _, completion in completion(.retry) }
      let url = server.appending(path: "unavailable-once")
      let request = session.request(url, interceptor: retrier).validate()
      try await expect(request, status: 200)
      guard request.retryCount == 1 else { throw Problem("there were \(request.retryCount) retries") }
    case .redirect:
      try await expect(session.request(server.appending(path: "redirect/1")), status: 200)
    case .digest:
      let url = server.appending(path: "digest-auth/auth/user/secret")
      try await expect(session.request(url).authenticate(username: "user", password: "secret"), status: 200)
    }
  }

  private func expect(_ request: DataRequest, status: Int) async throws {
    let response = await request.serializingData().response
    _ = try response.result.get()
    guard response.response?.statusCode == status else {
      throw Problem("\(rawValue) was answered with \(response.response?.statusCode ?? 0)")
    }
  }
}
