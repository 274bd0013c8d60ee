import Foundation
import FoundationNetworking
import HTTPWire

/// What few requests have: options of their own, watchers, files, earlier attempts. Most are made, sent and answered without
/// any of it, and take no memory for it.
struct RequestExtras: Sendable {
  static let none = RequestExtras()

  /// The requests of earlier attempts, and what came of them.
  var earlierRequests: [URLRequest] = []
  var earlierExchanges: [Exchange] = []
  /// Who gets the body as it comes.
  var pieces: ResponseChunks?
  var interceptors: [any RequestInterceptor] = []
  /// The request's own, beside those of its session.
  var monitors: [any EventMonitor] = []
  /// Those that hear of the URL session's events for this request, too.
  var transferMonitors: [any EventMonitor] = []
  var taskHandler: RequestWatchers.Handler<URLSessionTask>?
  var redirectHandler: (any RedirectHandler)?
  var cachedResponseHandler: (any CachedResponseHandler)?
  /// Responses that are stored at the end of the attempt, if whoever watches lets them.
  var cacheCandidates: [CacheCandidate] = []
  var credential: URLCredential?
  /// The request's own options, if it was given any.
  var profile: ConnectionProfile?
  /// The head of the response that is being read, when somebody watches.
  var headResponse: HTTPURLResponse?
  /// The body of an upload, and the file that goes with the attempt.
  var uploadable: UploadRequest.Uploadable?
  var uploadedFile: URL?
  /// What sends the body, when it is a stream.
  var streamSource: InputStreamSource?
  /// The file of a download, and what it can go on from.
  var fileURL: URL?
  var resumeData: Data?
  /// Who waits for that; asked for by a cancellation.
  var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
  var wantsResumeData = false
  var progress = ProgressReport()
  var headHandler: HeadHandler?
  var watchers = RequestWatchers()
  /// The attempt that waits until monitors have been told of all changes.
  var changesWaiter: CheckedContinuation<Void, Never>?
  /// Asynchronous sequences that tell of the request.
  var listeners: RequestListeners?
  var id: UUID?
  /// Answers for the retrier that is being asked.
  var retryAnswer: (@Sendable () -> Void)?
}

extension RequestCore.State {
  /// Whether there may be any; asked first where every request passes. To change one makes them.
  var hasExtras: Bool { !ownExtras.isEmpty }

  var extras: RequestExtras {
    _read {
      if ownExtras.isEmpty { yield RequestExtras.none } else { yield ownExtras[0] }
    }
    _modify {
      if ownExtras.isEmpty { ownExtras.append(RequestExtras()) }
      yield &ownExtras[0]
    }
  }
}
