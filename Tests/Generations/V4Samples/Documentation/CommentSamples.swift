import AlamofireV4
import Foundation

// The samples of this generation's own documentation, word for word. Nothing calls them.

private func guide() {
  Alamofire.request("https://httpbin.org/get").validate().responseJSON { response in
    switch response.result {
    case .success(let value): print(value)
    case .failure(let error): print(error)
    }
  }
}

private func errors(_ response: DefaultDataResponse) {
  if let error = response.error as? AFError {
    print(error.responseCode ?? 0)
  } else if let error = response.error as? URLError {
    print(error.code)
  }
}

private struct JSONStringArrayEncodings {
  struct JSONStringArrayEncoding: ParameterEncoding {
    let array: [String]

    func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
      var request = try urlRequest.asURLRequest()
      request.httpBody = try JSONSerialization.data(withJSONObject: array)
      return request
    }
  }
}

private func reachability() {
  let manager = NetworkReachabilityManager(host: "www.example.com")
  manager?.listener = { status in print(status) }
  manager?.startListening()
}

private func dataRequest() {
  Alamofire.request("https://httpbin.org/get").validate().responseJSON { response in
    print(response.result.value ?? "nothing")
  }
}

private func authorization(user: String, password: String, headers: inout HTTPHeaders) {
  if let field = Request.authorizationHeader(user: user, password: password) {
    headers[field.key] = field.value
  }
}

private enum Adapters {
  final class AccessTokenAdapter: RequestAdapter {
    private let accessToken: String
    init(accessToken: String) { self.accessToken = accessToken }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      var urlRequest = urlRequest
      urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
      return urlRequest
    }
  }
}

private func delegate(_ manager: SessionManager) {
  manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
    request.url?.host == "example.com" ? request : nil
  }
}

private func defaultHeaders() {
  var headers = SessionManager.defaultHTTPHeaders
  headers["DNT"] = "1 (Do Not Track Enabled)"
  let configuration = URLSessionConfiguration.default
  configuration.httpAdditionalHeaders = headers
  let manager = SessionManager(configuration: configuration)
  _ = manager
}

private func options() {
  SessionManager.defaultTransportOptions.httpVersions = .http1Only
}

private func manager() {
  let manager = SessionManager(configuration: .default)
  manager.request("https://httpbin.org/get").validate().responseJSON { print($0.result) }
}

private func byteStream() {
  let stream = Alamofire.stream(withHostName: "mail.example.com", port: 25)
  if let task = stream.task as? URLSessionStreamTask {
    task.readData(ofMinLength: 1, maxLength: 512, timeout: 10) { data, isAtEnd, error in
      print(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(error!)")
    }
    task.write(Data("QUIT\r\n".utf8), timeout: 10) { error in
      task.closeWrite()
    }
  }
}

private func policies() {
  let manager = ServerTrustPolicyManager(policies: [
    "test.example.com": .pinCertificates(
      certificates: ServerTrustPolicy.certificates(), validateCertificateChain: true, validateHost: true),
    "insecure.expired-apis.com": .disableEvaluation,
  ])
  _ = manager
}
