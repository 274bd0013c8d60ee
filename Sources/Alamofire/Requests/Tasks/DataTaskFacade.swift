import Foundation
import FoundationNetworking

/// The task of a data request's attempt: an object of Foundation's class for a transfer of the engine.
///
/// Unchecked, as Foundation's class is: its own property is constant. The kinds of tasks repeat their members,
/// because Foundation's classes allow no common superclass between.
final class DataTaskFacade: URLSessionDataTask, RecordedTask, @unchecked Sendable {
  let record: TaskRecord

  init(_ record: TaskRecord) {
    self.record = record
    super.init()
  }

  override var taskIdentifier: Int {
    get { record.identifier }
    set {}
  }
  override var originalRequest: URLRequest? {
    get { record.view.originalRequest }
    set {}
  }
  override var currentRequest: URLRequest? {
    get { record.view.currentRequest }
    set {}
  }
  override var response: URLResponse? {
    get { record.view.response }
    set {}
  }
  override var error: (any Error)? {
    get { record.view.error }
    set {}
  }
  override var state: URLSessionTask.State {
    get { record.view.state }
    set {}
  }
  override var countOfBytesSent: Int64 {
    get { record.view.count.sent }
    set {}
  }
  override var countOfBytesReceived: Int64 {
    get { record.view.count.received }
    set {}
  }
  override var countOfBytesExpectedToSend: Int64 {
    get { record.view.count.expectedToSend }
    set {}
  }
  override var countOfBytesExpectedToReceive: Int64 {
    get { record.view.count.expectedToReceive }
    set {}
  }
  override var progress: Progress {
    get { record.progress }
    set {}
  }

  override var priority: Float {
    get { record.request?.priority ?? URLSessionTask.defaultPriority }
    set { record.withRequest { $0.priority = newValue } }
  }

  override func resume() { record.withRequest { $0.resume() } }
  override func suspend() { record.withRequest { $0.suspend() } }
  override func cancel() { record.withRequest { $0.cancel() } }
}
