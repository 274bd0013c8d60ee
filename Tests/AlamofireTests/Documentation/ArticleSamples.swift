import Alamofire
import HTTPTestServer

// The samples of the README and of the articles. They must compile, and `SampleTests` checks that they are equal to
// those of the documents.

func readmeFirstScreen() async throws {
  struct Repository: Decodable, Sendable {
    let name: String
    let stargazers_count: Int
  }

  let url = "https://api.github.com/repos/swiftlang/swift"
  let repository = try await AF.request(url).validate().serializingDecodable(Repository.self).value
  print("\(repository.name) has \(repository.stargazers_count) stars.")
}

func gettingStarted(token: String, queue: DispatchQueue) async throws {
  struct User: Codable, Sendable {
    var name: String
    var born: Int
  }

  let user = try await AF.request("https://example.com/users/1")
    .validate()
    .serializingDecodable(User.self)
    .value

  let checked = AF.request("https://example.com/users/1", headers: [.accept("application/json")])
    .validate()
  _ = checked

  print(user.name)
  fflush(nil)

  AF.request("https://example.com/users/1")
    .validate()
    .responseDecodable(of: User.self, queue: queue) { response in
      print(response.result)
    }

  let found = AF.request("https://example.com/users", parameters: ["name": "Ada"])
  let created = AF.request(
    "https://example.com/users", method: .post, parameters: user, encoder: .json,
    headers: [.authorization(bearerToken: token)])
  _ = found

  let response = await created.validate().serializingDecodable(User.self).response
  switch response.result {
  case .success(let user):
    print("created \(user.name) in \(response.metrics?.taskInterval.duration ?? 0) s")
  case .failure(let error) where error.responseCode == 409:
    print("there is one already")
  case .failure(let error):
    print(error.localizedDescription)
  }
}

func settingUpASession() -> Session {
  let configuration = URLSessionConfiguration.af.default
  configuration.timeoutIntervalForRequest = 10  // seconds of silence
  configuration.timeoutIntervalForResource = 60  // seconds in all

  var options = TransportOptions()
  options.trustStore = .file("/etc/ssl/company.pem")
  options.bodySizeLimit = 10_000_000

  let session = Session(configuration: configuration, transportOptions: options)
  return session
}

func tryingAgain() -> DataRequest {
  struct TryThreeTimes: RequestInterceptor {
    func retry(
      _ request: Request, for session: Session, dueTo error: any Error,
      completion: @escaping @Sendable (RetryResult) -> Void
    ) {
      completion(request.retryCount < 2 ? .retryWithDelay(0.5) : .doNotRetry)
    }
  }

  let patient = AF.request("https://example.com/users/1", interceptor: TryThreeTimes())
  return patient
}
