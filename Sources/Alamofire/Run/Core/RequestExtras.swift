import Foundation
import FoundationNetworking
import HTTPWire

/// The members of the state that few requests have, in the order of its parts. Most requests never need one of them,
/// and therefore allocate no memory for them.
struct RequestExtras: Sendable {
  /// The memory of the extras. An array would be copied whole for each member that is read.
  ///
  /// Unchecked, because the lock of the core guards the extras as it guards the rest of the state.
  final class Box: @unchecked Sendable {
    static let empty = Box()
    @exclusivity(unchecked) fileprivate(set) var extras = RequestExtras()
  }

  static var none: RequestExtras { Box.empty.extras }

  // MARK: Options
  var id: UUID?
  var credential: URLCredential?
  /// The profile of a request that was given options or an identity of its own.
  var profile: ConnectionProfile?

  /// The priority, if it is not the usual one.
  var priority: Float = 0.5

  // MARK: Bodies
  /// The chunk readers of a data request.
  var chunks: ResponseChunks?
  /// The source that sends the body, if it is a stream.
  var streamSource: InputStreamSource?

  // MARK: Results
  var earlierRequests: [URLRequest] = []
  var earlierExchanges: [Exchange] = []
  /// Whether earlier attempts are forgotten, because there is no limit to their number.
  var forgetsEarlierAttempts = false
  var progress = ProgressReport()

  // MARK: Handlers
  var headHandler: HeadHandler?
  /// The handlers of requests that have been made.
  var watchers = RequestWatchers()
  /// The asynchronous sequences of the request.
  var listeners: RequestListeners?

  // MARK: Observers
  var taskHandler: RequestWatchers.Handler<URLSessionTask>?
  /// The responses that are stored at the end of the attempt if the observers allow it.
  var cacheCandidates: [CacheCandidate] = []
  /// The head of the response that is being read, if the request is observed.
  var headResponse: HTTPURLResponse?
}

extension RequestCore.State {
  /// Whether there are extras. Asked first on the path of every request, because a change makes them.
  var hasExtras: Bool { ownExtras != nil }

  var extras: RequestExtras {
    _read {
      let box = ownExtras ?? RequestExtras.Box.empty
      yield box.extras
    }
    _modify {
      let box = ownExtras ?? RequestExtras.Box()
      ownExtras = box
      yield &box.extras
    }
  }
}
