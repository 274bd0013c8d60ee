import Foundation

/// The destination of a response: a closure on a queue, or the tasks that await a `DataTask`.
package protocol ResponseSink: AnyObject, Sendable {
  /// Whether ``serialize(_:)`` runs user code, which must not run on the engine's thread.
  var runsUserCode: Bool { get }
  /// Takes the outcome, to serialize it later on the thread of the awaiting task. Returns false if the sink cannot.
  func postpone(_ outcome: RequestOutcome) -> Bool
  /// Makes the response of the outcome and keeps it. Returns the failure of the serializer, if there is one, for the
  /// retriers. Called again after a retry.
  func serialize(_ outcome: RequestOutcome) -> AFError?
  /// Replaces the error that ``serialize(_:)`` returned by that of a retrier.
  func replaceFailure(with error: AFError)
  /// Delivers the response, once.
  func deliver()
  /// Calls the monitors of `request` with the response, which has been made.
  func announce(to request: Request)
}

/// The outcome of a request, from which the sinks make responses.
package struct RequestOutcome: Sendable {
  package var request: URLRequest?
  package var exchange: Exchange?
  package var data: Data?
  package var error: AFError?
  /// The file and the resume data of a download.
  package var fileURL: URL?
  package var resumeData: Data?
}
