import Alamofire
import Foundation

/// Sends a request and waits for the response.
struct Delivery {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest

  /// The response, and the error that matters to the user.
  func result() async throws(UsageError) -> (response: AFDataResponse<Data>, failure: AFError?) {
    let session = try Session(invocation)
    let sending = session.request(request)
    let meter = environment.isErrorTerminal ? ProgressMeter(environment) : nil
    if let meter {
      // Serial, so that the line is drawn in order; the main queue waits for the response.
      sending.downloadProgress(queue: DispatchQueue(label: "af.progress")) { meter.moved($0) }
    }
    let response = await sending.serializingData(emptyResponseCodes: Set(100..<1000)).response
    meter?.finish()
    return (response, failure(of: response))
  }

  /// A redirect that was not to be followed is a response like any other.
  private func failure(of response: AFDataResponse<Data>) -> AFError? {
    guard invocation.redirects == .show, response.response != nil,
      (response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects
    else { return response.error }
    return nil
  }
}
