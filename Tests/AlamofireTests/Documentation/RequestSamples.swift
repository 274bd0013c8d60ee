import Alamofire

// Samples of the comments on requests, sessions, responses and errors; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func show(_ value: Any, status: Int? = nil) {}
private func showMissing() {}

/// Named as in the samples.
private let url = "https://example.com/user"

struct TokenAdapter: RequestInterceptor {
  let token: String
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    var urlRequest = urlRequest
    urlRequest.headers.add(.authorization(bearerToken: token))
    completion(.success(urlRequest))
  }
}

private func sessions(token: String) async throws {
  let session = Session(interceptor: TokenAdapter(token: token))
  let user = try await session.request("https://example.com/user").serializingDecodable(User.self).value
  show(user)
}

private func transportOptions(companyCA: URL) throws {
  var options = TransportOptions()
  options.connectTimeout = .seconds(5)
  options.trustStore = .pem(try Data(contentsOf: companyCA))
  let session = Session(transportOptions: options)
  show(session)
}

private func packedBodies() async {
  var options = TransportOptions()
  options.decodesContent = false
  let session = Session(transportOptions: options)
  let response = await session.request(url).serializingData().response
  let codings = response.response?.headers.value(for: "Content-Encoding")
  print(codings ?? "not coded")
}

private func dataRequests() async throws {
  AF.request("https://example.com/user")
    .validate()
    .responseDecodable(of: User.self) { response in print(response.result) }

  let user = try await AF.request(url).serializingDecodable(User.self).value
  show(user)
}

private func uploads(fileURL: URL) {
  AF.upload(fileURL, to: "https://httpbin.org/put", method: .put)
    .uploadProgress { print($0.fractionCompleted) }
    .validate()
    .responseData { print($0.result) }
}

private func downloads() async throws {
  AF.download("https://httpbin.org/image/png", to: DownloadRequest.suggestedDownloadDestination())
    .downloadProgress { print($0.fractionCompleted) }
    .validate()
    .responseURL { print($0.result) }

  let file = try await AF.download("https://httpbin.org/image/png").serializingDownloadedFileURL().value
  show(file)
}

struct Snapshot: UploadableConvertible {
  var measurements: [Double]
  func createUploadable() throws -> UploadRequest.Uploadable {
    .data(try JSONEncoder().encode(measurements))
  }
}

private func dataResponses() async {
  let response = await AF.request(url).serializingDecodable(User.self).response
  switch response.result {
  case .success(let user): show(user)
  case .failure(let error): show(error, status: response.response?.statusCode)
  }
}

private func downloadResponses(file: URL) {
  let response = AFDownloadResponse<URL>(
    request: nil, response: nil, fileURL: file, resumeData: nil, metrics: nil, serializationDuration: 0,
    result: .success(file))
  show(response)
}

private func metrics() async {
  let response = await AF.request(url).serializingData().response
  print(response.metrics?.taskInterval.duration ?? 0)
}

private func errors(response: AFDataResponse<Data>) {
  if let error = response.error {
    if error.responseCode == 404 { showMissing() }
    if let failure = error.underlyingError as? URLError { show(failure.code) }
  }
}

private func headers() {
  let field = HTTPHeader(name: "X-Request-ID", value: "42")
  let token = HTTPHeader.authorization(bearerToken: "secret")
  show([field, token])

  var headers: HTTPHeaders = ["Accept": "application/json"]
  headers.add(.authorization(bearerToken: "secret"))
  headers["accept"] = "text/plain"  // replaces the first
  show(headers)

  let purge = HTTPMethod(rawValue: "PURGE")
  show(purge)
}

private enum Conversions {
  enum Endpoint: URLConvertible {
    case user(Int)

    func asURL() throws -> URL {
      switch self {
      case .user(let id): try "https://example.com/users/\(id)".asURL()
      }
    }
  }

  enum Router: URLRequestConvertible {
    case createUser(Data)

    func asURLRequest() throws -> URLRequest {
      switch self {
      case .createUser(let body):
        var request = try URLRequest(url: "https://example.com/users", method: .post)
        request.httpBody = body
        return request
      }
    }
  }
}

private func configurations() {
  let configuration = URLSessionConfiguration.af.default
  configuration.timeoutIntervalForRequest = 10  // seconds
}

extension AlamofireExtension where ExtendedType == URLSessionConfiguration {
  static var patient: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.default
    configuration.timeoutIntervalForRequest = 300
    return configuration
  }
}

struct Temperature: AlamofireExtended {
  var celsius: Double
}

private func delegates(request: Request) {
  request.delegate?.retryResult(for: request, dueTo: .explicitlyCancelled) { print($0) }
}

private func backgroundConfigurations() {
  let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  _ = session
}

enum UploadError: NSErrorConvertible {
  case quotaExceeded

  var errorDescription: String? { "The quota is exceeded. Remove files, or ask for more space." }
}

private func launchEvents() {
  let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync")
  configuration.sessionSendsLaunchEvents = false
}

private func sharedContainer() {
  let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync")
  configuration.sharedContainerIdentifier = "group.com.example.app"
}

private func maskedCommand(request: Request) {
  let command = request.cURLDescription(redacting: .standard)
  print(command)
  request.cURLDescription(redacting: .standard, on: .global()) { print($0) }
}

private enum SessionSubclass {
  final class Backend: Session, @unchecked Sendable {
    init(options: TransportOptions) {
      let delegate = SessionDelegate()
      super.init(
        session: Session.urlSession(delegate: delegate, transportOptions: options), delegate: delegate,
        rootQueue: DispatchQueue(label: "backend"))
    }
  }
}
