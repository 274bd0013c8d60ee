import AlamofireV3
import Foundation

// The samples of this generation's own documentation, word for word. Nothing calls them.

private func guide() {
  Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
    .validate()
    .responseJSON { response in
      switch response.result {
      case .Success(let value): print(value)
      case .Failure(let error): print(error)
      }
    }
}

private func error() {
  let error = Alamofire.Error.errorWithCode(.DataSerializationFailed, failureReason: "There was no data.")
  _ = error
}

private enum Routers {
  enum Router: URLRequestConvertible {
    case ReadUser(String)

    var URLRequest: NSMutableURLRequest {
      switch self {
      case .ReadUser(let name):
        return NSMutableURLRequest(url: URL(string: "https://example.com/users/\(name)")!)
      }
    }
  }
}

private func reachability() {
  let manager = NetworkReachabilityManager(host: "example.com")
  manager?.listener = { status in print(status) }
  manager?.startListening()
}

private func manager() {
  let manager = Alamofire.Manager(configuration: .default)
  manager.request(.GET, "https://example.com/get").responseJSON { response in print(response.result) }
}

private func delegate(_ manager: Manager) {
  manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in nil }
}

private func policies() {
  let manager = Manager(
    serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["old.example.com": .DisableEvaluation]))
  _ = manager
}

private func stream(_ manager: Manager) {
  let stream = manager.stream(hostName: "mail.example.com", port: 25)
  if let task = stream.task as? URLSessionStreamTask {
    task.readData(ofMinLength: 1, maxLength: 512, timeout: 10) { data, isAtEnd, error in
      if let data { print(String(decoding: data, as: UTF8.self)) }
    }
    task.write(Data("QUIT\r\n".utf8), timeout: 10) { error in task.closeWrite() }
  }
}
