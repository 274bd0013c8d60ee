import HTTPWire

/// The answer of a stage: an event, or what the run has to wait for. This is the only form of a stage.
enum Outcome: Sendable, ~Copyable {
  case event(AttemptEvent)
  case wait(Wait)

  static var done: Outcome { .event(.done) }

  /// Awaits `work` in a task on the pool, where code of the caller may run, and files may be read. The work does not
  /// have the run: `then` writes what the work has found. An error of the work is that of the stage.
  static func task<Value: Sendable>(
    _ work: @escaping @Sendable () async throws(AFError) -> Value,
    then: @escaping @Sendable (RequestRun, Value) throws(AFError) -> Outcome
  ) -> Outcome {
    .wait(
      .task {
        do throws(AFError) {
          let value = try await work()
          return { (run) throws(AFError) in try then(run, value) }
        } catch {
          return { (_) throws(AFError) in throw error }
        }
      })
  }

  /// Awaits `work`, which has nothing to write.
  static func task(_ work: @escaping @Sendable () async throws(AFError) -> Void) -> Outcome {
    task(work) { _, _ in .done }
  }

  /// Waits at a gate.
  static func gate(_ gate: Gate, then: @escaping Continuation) -> Outcome { .wait(.gate(gate, then: then)) }
}

/// The rest of a stage, after what it has waited for.
typealias Continuation = @Sendable (RequestRun) throws(AFError) -> Outcome

/// The wait of a run. A stage names it and registers nothing: the run passes itself on once it has left the stage, so
/// that it cannot be continued before.
enum Wait: Sendable, ~Copyable {
  /// Code of the caller, or anything else that is awaited, in a task on the pool.
  case task(@Sendable () async -> Continuation)
  /// The request has the run until the gate opens.
  case gate(Gate, then: Continuation)
  /// The transport has the run until the transfer ends.
  case transfer(Transfer)
}

/// The decisions of others for which a run waits. A gate needs no task.
enum Gate: Sendable, CaseIterable {
  /// The request is resumed.
  case resumed
  /// A handler has decided about the head of the response.
  case headDecision
  /// The cookies of a response are in the storage.
  case cookies
  /// The readers of a stream have had everything.
  case readers
  /// Monitors have been notified of all changes of the state.
  case notifications
}

/// A transfer that a run waits for.
struct Transfer: Sendable, ~Copyable {
  typealias End = @Sendable (RequestRun, Result<WireResponse, TransportFailure>) throws(AFError) -> Outcome

  let transport: any Transport
  let request: WireRequest
  let observer: any TransferObserver
  /// Whether the transport can tell at once if it takes the request without a task.
  var mayNeedNoTask = false
  /// The rest of the stage, after the transfer.
  let then: End

  /// Returns a stage that waits for this transfer.
  consuming func again() -> Continuation {
    let (transport, request, observer) = (transport, request, observer)
    let (mayNeedNoTask, then) = (mayNeedNoTask, then)
    return { _ in
      .wait(
        .transfer(
          Transfer(
            transport: transport, request: request, observer: observer, mayNeedNoTask: mayNeedNoTask,
            then: then)))
    }
  }

  /// Performs the transfer in a task.
  consuming func work() -> @Sendable () async -> Continuation {
    let (transport, request, observer, then) = (transport, request, observer, then)
    return {
      let outcome: Result<WireResponse, TransportFailure>
      do throws(TransportFailure) {
        outcome = .success(try await transport.send(request, observer: observer))
      } catch {
        outcome = .failure(error)
      }
      return { (run) throws(AFError) in try then(run, outcome) }
    }
  }
}
