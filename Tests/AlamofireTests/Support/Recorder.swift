import Dispatch
import Synchronization
import Testing

/// Records values that closures add on any thread, and lets a test wait for them.
final class Recorder<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var waiters: [(id: Int, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    var lastID = 0
  }

  private let state = Mutex(State())

  var values: [Value] { state.withLock { $0.values } }
  var count: Int { values.count }

  func add(_ value: Value) {
    let ready = state.withLock { state in
      state.values.append(value)
      let count = state.values.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }.map(\.continuation)
    }
    for continuation in ready { continuation.resume() }
  }

  /// Waits until there are `count` values, or the task is cancelled, and returns all. After two minutes it records an
  /// issue.
  @discardableResult
  func wait(for count: Int) async -> [Value] {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          if state.values.count >= count || Task.isCancelled { return true }
          state.waiters.append((id, count, continuation))
          return false
        }
        if isReady { return continuation.resume() }
        DispatchQueue.global().asyncAfter(deadline: .now() + 120) { [weak self] in self?.endWait(id) }
      }
    } onCancel: {
      endWait(id)
    }
    let values = values
    if values.count < count, !Task.isCancelled {
      Issue.record(
        "After two minutes there are \(values.count) of \(count) values; the last ones: \(values.suffix(5))")
    }
    return values
  }

  /// Waits for the value with this index, as ``wait(for:)`` does. Throws if there is none in the end, so that a test
  /// whose time is over fails alone.
  func value(_ index: Int) async throws -> Value {
    let values = await wait(for: index + 1)
    guard values.count > index else { throw CancellationError() }
    return values[index]
  }

  private func endWait(_ id: Int) {
    let waiter = state.withLock { state in
      state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume()
  }
}

/// Polls a condition for at most two minutes. For conditions without an event, such as the release of an object.
func eventually(_ condition: () -> Bool) async -> Bool {
  let deadline = ContinuousClock.now + .seconds(120)
  while ContinuousClock.now < deadline {
    if condition() { return true }
    await Task.yield()
  }
  return condition()
}
