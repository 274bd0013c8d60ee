import Alamofire

// Samples of MakingRequests.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
  var born: Int
}

private func show(_ value: Any) {}

private func firstRequest() async throws {
  let user = try await AF.request("https://example.com/users/1")
    .validate()
    .serializingDecodable(User.self)
    .value
  show(user)
}

private func methods(user: User) async throws {
  let list = AF.request("https://example.com/users")
  let created = AF.request(
    "https://example.com/users", method: .post, parameters: user, encoder: .json)
  let removed = AF.request("https://example.com/users/1", method: .delete)
  let purged = AF.request("https://example.com/cache", method: HTTPMethod(rawValue: "PURGE"))
  show((list, created, removed, purged))
}

private func modifiers() {
  let report = AF.request("https://example.com/report") { urlRequest in
    urlRequest.timeoutInterval = 120
    urlRequest.cachePolicy = .reloadIgnoringLocalCacheData
  }
  show(report)
}

private func headers() {
  var headers: HTTPHeaders = ["Accept": "application/json", "X-Request-ID": "42"]
  headers.add(.authorization(bearerToken: "secret"))
  headers["accept"] = "application/problem+json"  // replaces the first field
  headers.remove(name: "X-Request-ID")

  let request = AF.request("https://example.com/users", headers: headers)
  show(request)
}

private func handlers(queue: DispatchQueue) {
  AF.request("https://example.com/users/1")
    .validate()
    .responseDecodable(of: User.self, queue: queue) { response in
      switch response.result {
      case .success(let user): print(user.name)
      case .failure(let error): print(error.localizedDescription)
      }
    }
}

private func lifecycle() {
  let request = AF.request("https://example.com/users", shouldAutomaticallyResume: false)
  request.responseString { response in print(response.result) }

  request.resume()  // sends it
  request.suspend()  // nothing is sent or read until it is resumed
  request.cancel()  // ends with AFError.explicitlyCancelled
}

private func progress(queue: DispatchQueue) async {
  let request = AF.request("https://example.com/large.json")
    .downloadProgress(queue: queue) { progress in print(progress.fractionCompleted) }
  _ = await request.serializingData().response
}

private func redirects() {
  let unfollowed = AF.request("https://example.com/old").redirect(using: .doNotFollow)

  let checked = AF.request("https://example.com/old")
    .redirect(
      using: .modify { task, request, response in
        request.url?.host == "example.com" ? request : nil  // nil: not followed
      })
  show((unfollowed, checked))
}

private func looking() {
  AF.request("https://example.com/users")
    .cURLDescription { print($0) }
    .responseString { response in debugPrint(response) }
}
