import Foundation

/// The response of a data request or of a download, for handlers and awaiting tasks.
protocol SerializedResponse<Success> {
  associatedtype Success

  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>)

  var result: Result<Success, AFError> { get }
  /// Returns a copy with another error.
  func failing(with error: AFError) -> Self
}

extension DataResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, exchange: outcome.exchange, data: outcome.data,
      serializationDuration: serializationDuration, result: result)
  }
}

extension DownloadResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, exchange: outcome.exchange, fileURL: outcome.fileURL,
      resumeData: outcome.resumeData, serializationDuration: serializationDuration, result: result)
  }

  func failing(with error: AFError) -> DownloadResponse {
    DownloadResponse(
      request: request, response: response, fileURL: fileURL, resumeData: resumeData, metrics: metrics,
      serializationDuration: serializationDuration, result: .failure(error))
  }
}
