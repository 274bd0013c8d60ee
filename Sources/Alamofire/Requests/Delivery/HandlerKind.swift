import Foundation

/// The type of response that a handler is called with, and the event of monitors for it.
protocol HandlerKind {
  associatedtype Value: Sendable
  associatedtype Response: SerializedResponse<Value> & Sendable

  /// Calls the monitors of `request` with the response.
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
