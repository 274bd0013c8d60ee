import FoundationEssentials
import HTTPWire
import Synchronization

/// What responders and lists have said, as long as it may be believed. One for the process: what an issuer has signed
/// is true for every session.
final class RevocationMemory: Sendable {
  static let shared = RevocationMemory()

  private struct State {
    var answers: [Data: (status: RevocationStatus, end: Int)] = [:]
    var lists: [String: (list: [RevocationList], end: Int, size: Int)] = [:]
  }

  private let state = Mutex(State())
  /// So that a program that meets many servers does not grow without end.
  private let answerLimit = 1024
  private let listSizeLimit = 32 << 20

  func answer(to question: OCSPQuestion, at now: Int) -> RevocationStatus? {
    let key = question.key
    return state.withLock { state in
      guard let kept = state.answers[key], now <= kept.end else { return nil }
      return kept.status
    }
  }

  /// Keeps an answer until `end`, in seconds since 1970.
  func keep(_ status: RevocationStatus, for question: OCSPQuestion, until end: Int, at now: Int) {
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

  /// Keeps what was read at `url`, `size` bytes, until `end`.
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
