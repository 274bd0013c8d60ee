import Foundation

/// Which kind of response a handler is called with, and how monitors are told of it.
protocol HandlerKind {
  associatedtype Value: Sendable
  associatedtype Response: SerializedResponse<Value> & Sendable

  /// Tells the monitors of `request` that the response has been made.
  static func announce(_ response: Response, to request: Request)
}

enum DataHandler<Value: Sendable>: HandlerKind {
  static func announce(_ response: DataResponse<Value, AFError>, to request: Request) {
    guard let request = request as? DataRequest else { return }
    if let plain = response as? DataResponse<Data?, AFError> {
      request.core.tell { $0.request(request, didParseResponse: plain) }
    } else {
      request.core.tell { $0.request(request, didParseResponse: response) }
    }
  }
}

enum DownloadHandler<Value: Sendable>: HandlerKind {
  static func announce(_ response: DownloadResponse<Value, AFError>, to request: Request) {
    guard let request = request as? DownloadRequest else { return }
    if let plain = response as? DownloadResponse<URL?, AFError> {
      request.core.tell { $0.request(request, didParseResponse: plain) }
    } else {
      request.core.tell { $0.request(request, didParseResponse: response) }
    }
  }
}
