import Foundation
import HTTPWire
import Synchronization

// The body of an upload, which is made anew for each attempt.
extension Attempt {
  func prepareBody() throws(AFError) -> Outcome<Attempt> {
    guard let body = core.body else { return .done }
    if let made = body.resumer?.uploadable { return try bodyIsMade(made, isNew: isFirstBody(of: body)) }
    let isNew = isFirstBody(of: body)
    core.removeUploadedFile()
    guard body.runsUserCode || body.transfer != nil else { return try bodyIsMade(body.made(), isNew: isNew) }
    return .task {
      body.made()
    } then: { (attempt, made) throws(AFError) in
      try attempt.bodyIsMade(made, isNew: isNew)
    }
  }

  /// Whether the body was not made before. That of a resumable upload is made once.
  private func isFirstBody(of body: UploadBody) -> Bool {
    body.resumer == nil || core.uploadable == nil
  }

  private func bodyIsMade(
    _ result: Result<UploadRequest.Uploadable, AFError>, isNew: Bool
  ) throws(AFError) -> Outcome<Attempt> {
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

  /// Asks the delegate for the stream of the body, if it is one.
  func askForBodyStream() -> Outcome<Attempt> {
    guard let work = core.askForBodyStream(of: request) else { return .done }
    return .task(work)
  }
}

extension Attempt {
  /// Decides what the response of a resumable upload means.
  func processUploadResponse() throws(AFError) -> Outcome<Attempt> {
    guard let resumer = core.resumer, let head = hops.exchange?.head else { return keepAnswer() }
    let body = core.state.withLock { $0.results.data }
    switch resumer.process(head, body: body, at: hops.url ?? "") {
    case .result: return keepAnswer()
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
}

extension RequestCore {
  /// The decisions about a resumable upload; `nil` for any other request.
  var resumer: UploadResumer? { body?.resumer }

  /// The body of an upload, once it is made.
  var uploadable: UploadRequest.Uploadable? { state.withLock { $0.extras.uploadable } }

  /// Returns the work that asks the delegate for a stream of the body; `nil` if the body is none.
  func askForBodyStream(of request: Request) -> (@Sendable () async throws(AFError) -> Void)? {
    guard let ours = uploadable, ours.stream != nil, let task = tasks(of: request).last else { return nil }
    return { [self] () throws(AFError) in
      let answer: UploadRequest.Uploadable? = await session.delegateAnswer(
        whenForgotten: ours, whenCancelled: nil
      ) { delegate, facade, completion in
        delegate.urlSession(
          facade, task: task, needNewBodyStream: { stream in completion(stream.map { .stream($0) }) })
      }
      try checkAlive()
      try bodyStreamGiven(answer)
    }
  }

  private func bodyStreamGiven(_ answer: UploadRequest.Uploadable?) throws(AFError) {
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
