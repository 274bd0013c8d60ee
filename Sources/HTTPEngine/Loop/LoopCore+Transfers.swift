import CCurl
import Glibc
import HTTPWire

// The transfers of libcurl.
extension LoopCore {
  /// Hands a request to libcurl.
  func submitTransfer(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Transfer.Completion
  ) {
    guard rawMulti != nil, let transfer = pool.popLast() ?? Transfer(loop: self) else {
      completion.call(with: .failure(Self.noMemory))
      return
    }
    transfer.begin(request, ticket: ticket, observer: observer, completion: completion)
    transfers[ticket] = transfer
    nextSweep = min(nextSweep, transfer.expiry)
    switch observer.transferBegan(LoopTransferControl(loop: owner, ticket: ticket)) {
    // A transfer that only connects takes no place in the queue of its host.
    case .go: if admits(transfer) { start(transfer) }
    // The transfer enters its queue when it is resumed, so that it does not delay other requests.
    case .hold: _ = transfer.flow.suspend()
    case .refuse: end(transfer, .failure(TransportFailure(.cancelled, "The request was cancelled.")))
    }
  }

  /// Adds an admitted transfer to libcurl's multi handle. A transfer that was suspended while it waited leaves the
  /// queue, and enters it again when it is resumed.
  func start(_ transfer: Transfer) {
    guard let request = transfer.request, !isShutDown else { return }
    guard !transfer.flow.isSuspended else {
      transfer.phase = .withheld
      startAdmitted(hostQueues.remove(transfer, multiplexes: nil, now, isUnsent: true))
      return
    }
    if let failure = transfer.configure(request) {
      end(transfer, .failure(failure))
      return
    }
    guard transfer.prepareHandle() else {
      end(transfer, .failure(Self.noMemory))
      return
    }
    limitConnections(request.profile.connectionsPerHost)
    let code = curl_multi_add_handle(rawMulti, transfer.easy.raw)
    guard code == CURLM_OK else {
      end(transfer, .failure(TransportFailure(.unknown, String(cString: curl_multi_strerror(code)))))
      return
    }
    transfer.phase = .running(sharesConnection: transfer.mayShareConnection)
    transfer.phaseTimer?.begin()
    stalledPoll.transferStarted(sharesConnection: transfer.phase.sharesConnection)
    if transfer.timing.started == 0 { transfer.timing.started = now }
    // The time in the queue does not count as silence of the host.
    noteActivity(of: transfer)
    hasStarted = true
  }

  /// Sets libcurl's limits of connections. The queues keep to the limit themselves. libcurl's own limit is for hosts
  /// that allow fewer streams a connection than usual, and costs nothing while no transfer waits for it.
  func limitConnections(_ limit: Int) {
    guard limit != connectionLimit else { return }
    connectionLimit = limit
    if !CurlLibrary.shared.losesHostConnections {
      ccurl_multi_set_long(rawMulti, CURLMOPT_MAX_HOST_CONNECTIONS, limit)
    }
    ccurl_multi_set_long(rawMulti, CURLMOPT_MAXCONNECTS, max(64, limit + 8))
  }

  /// Wakes the waiting transfers: libcurl looks at them whenever a handle is removed.
  func wakeWaiting() {
    hasNewConnection = false
    guard let handle = EasyHandle() else { return }
    handle.set(CURLOPT_URL, "http://localhost/")
    if curl_multi_add_handle(rawMulti, handle.raw) == CURLM_OK {
      curl_multi_remove_handle(rawMulti, handle.raw)
    }
  }

  func finishEnded() -> Bool {
    var result = CURLE_OK
    var any = false
    while let easy = ccurl_next_ended(rawMulti, &result) {
      any = true
      let transfer = Transfer.of(ccurl_private(easy)).takeUnretainedValue()
      if transfer.mayRepeat(after: result) {
        sendAgain(transfer)
      } else if result == CURLE_OK, transfer.dropped == nil, let failure = transfer.missedTimeout() {
        end(transfer, .failure(failure))
      } else {
        end(transfer, transfer.outcome(result))
      }
    }
    return any
  }

  func sendAgain(_ transfer: Transfer) {
    removeHandle(of: transfer)
    transfer.prepareRepeat()
    start(transfer)
  }

  /// Removes a transfer from libcurl's multi handle.
  private func removeHandle(of transfer: Transfer) {
    guard transfer.phase.isAdded else { return }
    curl_multi_remove_handle(rawMulti, transfer.easy.raw)
    stalledPoll.transferEnded(sharesConnection: transfer.phase.sharesConnection)
    transfer.phase = .waiting
  }

  /// Removes a transfer from libcurl and its queue, starts the transfers that waited for it, and calls its completion.
  /// The completion is last because it can start another transfer.
  func end(_ transfer: Transfer, _ outcome: consuming Transfer.Outcome) {
    removeHandle(of: transfer)
    transfers[transfer.ticket] = nil
    let successors = hostQueues.remove(transfer, multiplexes: transfer.multiplexes, now)
    let completion = transfer.finish(&outcome)
    recycle(transfer)
    if !successors.isEmpty { startAdmitted(successors) }
    completion.call(with: outcome)
  }

  private func recycle(_ transfer: Transfer) {
    if pool.count < Self.pooledTransfers { pool.append(transfer) } else { transfer.retireHandle() }
  }

  private func admits(_ transfer: Transfer) -> Bool {
    transfer.phase = .waiting
    return hostQueues.enqueue(transfer, now)
  }

  func suspend(_ transfer: Transfer) {
    guard transfer.flow.suspend() else { return }
    noteActivity(of: transfer)
    // Callbacks hold a body back, because libcurl 7.88 may read once more after this call. The bytes of that read are
    // lost if the response ends with them. Before the head, no callback can pause. Without a connection, the call is
    // refused.
    guard transfer.phase.isAdded, transfer.response.assembly.head == nil else { return }
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_ALL)
    transfer.flow = code == CURLE_OK ? .stopped(.suspended) : .stopping
  }

  func resume(_ transfer: Transfer) {
    guard transfer.flow.isSuspended else { return }
    let isStopped = transfer.flow.resume()
    if transfer.phase == .withheld {
      noteActivity(of: transfer)
      if admits(transfer) { start(transfer) }
    } else if transfer.phase.isAdded, isStopped {
      proceed(transfer)
    } else {
      noteActivity(of: transfer)
    }
  }

  /// Tells libcurl to continue.
  func proceed(_ transfer: Transfer) {
    noteActivity(of: transfer)
    hasStarted = true
    stalledPoll.transferContinued(sharesConnection: transfer.phase.sharesConnection)
    // libcurl delivers the bytes that it held back during this call, and the callbacks may refuse them.
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_CONT)
    // The connection can have been lost in the meantime. Then there is nothing to continue.
    if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { end(transfer, transfer.outcome(code)) }
  }

  private func noteActivity(of transfer: Transfer) {
    transfer.timing.lastActivity = now
    if transfer.phaseTimer != nil { transfer.alignPhaseTimer() }
    nextSweep = min(nextSweep, transfer.expiry)
  }

  // MARK: Time

  /// Ends transfers that were silent or lasted too long, and computes the time of the next search.
  func sweep() {
    nextSweep = .max
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      let expiry = transfer.expiry
      guard expiry <= now else {
        nextSweep = min(nextSweep, expiry)
        continue
      }
      // Nothing waits longer for the rest of a body that is not wanted.
      if let dropped = transfer.dropped, dropped.deadline <= now {
        end(transfer, transfer.outcome(CURLE_OK))
        continue
      }
      guard let failure = transfer.timeout() else {
        nextSweep = min(nextSweep, transfer.expiry)
        continue
      }
      end(transfer, .failure(failure))
    }
  }

  /// Ends the transfer that keeps the loop busy without moving a byte.
  func breakSpin() {
    let suspects = transfers.values.filter(\.phase.isAdded)
    let answered = suspects.filter {
      $0.response.assembly.head != nil && $0.count.sent < $0.count.expectedToSend
    }
    let stuck = (answered.isEmpty ? suspects : answered).min {
      $0.timing.lastActivity < $1.timing.lastActivity
    }
    spin = SpinGuard()
    guard let stuck else { return }
    let message =
      "The transfer kept the processor busy without moving a byte and was ended; HTTP/1.1 (httpVersions) may help."
    end(stuck, .failure(TransportFailure(.connectionLost, message, metrics: stuck.metricsSoFar())))
  }
}
