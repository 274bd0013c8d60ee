import Foundation
import HTTPWire
import Synchronization

// The body of an upload, which is made anew for each attempt.
extension AttemptDriver {
  @inline(never)
  nonisolated(nonsending) func prepareBody() async throws(AFError) -> AttemptEvent {
    guard let body = core.body else { return .done }
    let result: Result<UploadRequest.Uploadable, AFError>
    // The body of a resumable upload is made once.
    let isNew = body.resumer == nil || core.state.withLock { $0.extras.uploadable } == nil
    if let made = body.resumer?.uploadable {
      result = made
    } else {
      core.removeUploadedFile()
      let runsOnLoop = !body.runsUserCode && body.transfer == nil
      result = runsOnLoop ? Self.made(body) : await core.session.offLoop { Self.made(body) }
    }
    switch result {
    case .success(let uploadable):
      core.state.withLock { state in
        state.extras.uploadable = uploadable
        if case .file(let url, true) = uploadable { state.extras.uploadedFile = url }
      }
    case .failure(let error): core.fail(error)
    }
    if isNew, core.notifiesMonitors { tellUploadable(result) }
    _ = try result.get()
    return .done
  }

  static func made(_ body: UploadBody) -> Result<UploadRequest.Uploadable, AFError> {
    do {
      guard let transfer = body.transfer else { return .success(try body.convertible.createUploadable()) }
      return .success(try transfer.uploadable { try body.convertible.createUploadable() })
    } catch {
      return .failure(error as? AFError ?? .createUploadableFailed(error: error))
    }
  }

  func provideBodyStreamAtOnce() -> AttemptEvent? {
    core.observers.contains(.task) && spentStream != nil ? nil : .done
  }

  /// The stream that was read and cannot be read again, as a redirect or a challenge requires.
  private var spentStream: InputStream? {
    guard case .source(let source) = values.request.body, !source.isRepeatable,
      case .stream(let spent)? = core.state.withLock({ $0.extras.uploadable })
    else { return nil }
    return spent
  }

  /// Asks the delegate for another stream. Without one the transport ends the request with an error.
  @inline(never)
  nonisolated(nonsending) func provideBodyStream() async throws(AFError) -> AttemptEvent {
    guard let spent = spentStream, case .source(let source) = values.request.body else { return .done }
    try await askForBodyStream()
    guard case .stream(let next)? = core.state.withLock({ $0.extras.uploadable }), next !== spent else {
      return .done
    }
    values.request = values.request.changing {
      $0.body = .source(core.source(of: next, length: source.length))
    }
    return .done
  }
}

extension AttemptDriver {
  /// Decides what the response of a resumable upload means.
  func processUploadResponse() throws(AFError) -> AttemptEvent {
    guard let resumer = core.resumer, let head = values.exchange?.head else { return .done }
    let body = core.state.withLock { $0.results.data }
    switch resumer.process(head, body: body, at: values.request.url) {
    case .result: return .done
    case .proceed: return .continued
    case .refusal:
      guard (200..<300).contains(head.status) else {
        throw .responseValidationFailed(reason: .unacceptableStatusCode(code: head.status))
      }
      throw .responseValidationFailed(
        reason: .customValidationFailed(error: ResumableUploadError.noProgress))
    case .failure(let error): throw .responseValidationFailed(reason: .customValidationFailed(error: error))
    }
  }

  /// Begins with the next request of a resumable upload. It is no retry, because nothing has failed.
  func prepareContinuation() throws(AFError) -> AttemptEvent {
    if core.observers.contains(.task) { tellCompleted(nil) }
    guard core.prepareRetry(of: request, because: .continuation) else {
      throw core.error ?? (core.isAbandoned ? core.session.reasonOfEnd : .explicitlyCancelled)
    }
    values = AttemptValues()
    return .done
  }
}

extension RequestCore {
  /// The decisions about a resumable upload; `nil` for any other request.
  var resumer: UploadResumer? { body?.resumer }

  /// Removes the file that was made for the upload. A missing file, or one that cannot be removed, is no error of the
  /// request.
  func removeUploadedFile() {
    guard let body else { return }
    let url = state.withLock { state in
      defer { state.extras.uploadedFile = nil }
      return state.extras.uploadedFile
    }
    if let url { try? body.fileManager.removeItem(at: url) }
  }
}
