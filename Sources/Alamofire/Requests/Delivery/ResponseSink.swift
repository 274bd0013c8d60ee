import Foundation

/// The one way out of a request: a closure on a queue, or whoever awaits a `DataTask`.
package protocol ResponseSink: AnyObject, Sendable {
  /// Whether ``serialize(_:)`` runs code of a user, which must not run on the engine's thread.
  var runsUserCode: Bool { get }
  /// Takes the outcome to turn it into a response later, on the thread of whoever awaits it. Returns
  /// false if it cannot.
  func postpone(_ outcome: RequestOutcome) -> Bool
  /// Turns the outcome into the response and keeps it. Returns the failure, if there is one and a
  /// serializer was at work, so that the retriers can be asked. Called again after a retry.
  func serialize(_ outcome: RequestOutcome) -> AFError?
  /// A retrier has put another error in the place of the one that ``serialize(_:)`` returned.
  func replaceFailure(with error: AFError)
  /// Hands the response out, once.
  func deliver()
  /// Tells the monitors of `request` of the response, which has been made.
  func announce(to request: Request)
}

/// The outcome of a request, from which the sinks make responses.
package struct RequestOutcome: Sendable {
  package var request: URLRequest?
  package var exchange: Exchange?
  package var data: Data?
  package var error: AFError?
  /// Of a download: where the file lies, and what it can go on from.
  package var fileURL: URL?
  package var resumeData: Data?
}
