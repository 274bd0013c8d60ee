import Foundation
import HTTPWire
import Synchronization

// The body of an upload, which is made anew for each attempt.
extension RequestRun {
  func prepareBody() throws(AFError) -> Outcome {
    guard let body = core.body else { return .done }
    if let made = body.resumer?.uploadable { return try bodyIsMade(made, isNew: isFirstBody(of: body)) }
    let isNew = isFirstBody(of: body)
    core.removeUploadedFile()
    guard body.runsUserCode || body.transfer != nil else { return try bodyIsMade(body.made(), isNew: isNew) }
    return .task {
      body.made()
    } then: { (run, made) throws(AFError) in
      try run.bodyIsMade(made, isNew: isNew)
    }
  }

  /// Whether the body was not made before. That of a resumable upload is made once.
  private func isFirstBody(of body: UploadBody) -> Bool {
    body.resumer == nil || core.state.withLock { $0.extras.uploadable } == nil
  }

  private func bodyIsMade(
    _ result: Result<UploadRequest.Uploadable, AFError>, isNew: Bool
  ) throws(AFError) -> Outcome {
    switch result {
    case .success(let uploadable):
      core.state.withLock { state in
        state.extras.uploadable = uploadable
        if case .file(let url, true) = uploadable { state.extras.uploadedFile = url }
      }
    case .failure(let error): core.fail(error)
    }
    if isNew, core.notifiesMonitors { core.tellUploadable(result, of: request) }
    _ = try result.get()
    return .done
  }

  /// Asks the delegate for another stream if the one that was read is needed again, as a redirect or a challenge
  /// requires. Without one the transport ends the request with an error.
  func provideBodyStream() throws(AFError) -> Outcome {
    guard core.observers.contains(.task), case .source(let source) = values.request.body,
      !source.isRepeatable,
      let spent = core.state.withLock({ $0.extras.uploadable }), spent.stream != nil
    else { return .done }
    return try askForBodyStream { (run) throws(AFError) in
      guard let next = run.core.state.withLock({ $0.extras.uploadable })?.stream, next !== spent.stream else {
        return .done
      }
      run.values.request = run.values.request.changing {
        $0.body = .source(run.core.source(of: next, length: source.length))
      }
      return .done
    }
  }

  /// Asks the delegate for the stream of a body, if it is one.
  func askForBodyStream(then: @escaping Continuation) throws(AFError) -> Outcome {
    guard let ours = core.state.withLock({ $0.extras.uploadable }), ours.stream != nil,
      let task = core.tasks(of: request).last
    else { return try then(self) }
    return .task { [core] in
      await core.session.delegateAnswer(whenForgotten: ours, whenCancelled: nil) {
        delegate, facade, completion in
        delegate.urlSession(
          facade, task: task, needNewBodyStream: { stream in completion(stream.map { .stream($0) }) })
      } as UploadRequest.Uploadable?
    } then: { (run, answer) throws(AFError) in
      try run.core.checkAlive()
      try run.core.bodyStreamGiven(answer)
      return try then(run)
    }
  }
}

extension RequestRun {
  /// Decides what the response of a resumable upload means.
  func processUploadResponse() throws(AFError) -> Outcome {
    guard let resumer = core.resumer, let head = values.exchange?.head else { return .done }
    let body = core.state.withLock { $0.results.data }
    switch resumer.process(head, body: body, at: values.request.url) {
    case .result: return .done
    case .proceed: return .event(.continued)
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
  func prepareContinuation() throws(AFError) -> Outcome {
    if core.observers.contains(.task) { core.tellCompleted(nil, of: request) }
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

  fileprivate func bodyStreamGiven(_ answer: UploadRequest.Uploadable?) throws(AFError) {
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: state.withLock { $0.results.request }?.url?.absoluteString ?? ""))
    }
    state.withLock { $0.extras.uploadable = answer }
  }

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
