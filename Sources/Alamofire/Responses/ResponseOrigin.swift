import FoundationNetworking

/// Where a response value has its `HTTPURLResponse` and its metrics from: objects that somebody handed
/// in, or an exchange that makes them when they are asked for.
enum ResponseOrigin: Sendable {
  case finished(HTTPURLResponse?, TaskMetrics?)
  case exchange(Exchange?)

  var response: HTTPURLResponse? {
    switch self {
    case .finished(let response, _): response
    case .exchange(let exchange): exchange?.httpResponse
    }
  }

  var metrics: TaskMetrics? {
    switch self {
    case .finished(_, let metrics): metrics
    case .exchange(let exchange): exchange?.metrics
    }
  }
}
