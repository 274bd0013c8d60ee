import FoundationEssentials
import HTTPWire
import Synchronization

/// The cached answers of responders and lists, as long as they are valid. All sessions of the process share one cache,
/// because the answers are signed.
final class RevocationCache: Sendable {
  static let shared = RevocationCache()

  private struct State {
    var answers: [Data: (status: RevocationStatus, end: Int)] = [:]
    var lists: [String: (list: [RevocationList], end: Int, size: Int)] = [:]
  }

  private let state = Mutex(State())
  /// The limits keep the memory of programs with many servers bounded.
  private let answerLimit = 1024
  private let listSizeLimit = 32 << 20

  func answer(to question: OCSPQuery, at now: Int) -> RevocationStatus? {
    let key = question.key
    return state.withLock { state in
      guard let kept = state.answers[key], now <= kept.end else { return nil }
      return kept.status
    }
  }

  /// Keeps an answer until `end`, in seconds since 1970.
  func keep(_ status: RevocationStatus, for question: OCSPQuery, until end: Int, at now: Int) {
    let key = question.key
    state.withLock { state in
      if state.answers.count >= answerLimit {
        state.answers = state.answers.filter { now <= $0.value.end }
        if state.answers.count >= answerLimit { state.answers.removeAll() }
      }
      state.answers[key] = (status, end)
    }
  }

  func list(at url: String, at now: Int) -> [RevocationList]? {
    state.withLock { state in
      guard let kept = state.lists[url], now <= kept.end else { return nil }
      return kept.list
    }
  }

  /// Keeps the lists of `url`, which have `size` bytes, until `end`.
  func keep(_ list: [RevocationList], at url: String, size: Int, until end: Int) {
    guard size <= listSizeLimit else { return }
    state.withLock { state in
      let total = state.lists.values.reduce(size) { $0 + $1.size }
      if total > listSizeLimit { state.lists.removeAll() }
      state.lists[url] = (list, end, size)
    }
  }

  func removeAll() { state.withLock { $0 = State() } }
}
