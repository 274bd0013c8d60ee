import Synchronization

extension Request {
  /// Whom the events of this request are told: the monitors of its session, then its own.
  public var eventMonitor: (any EventMonitor)? {
    let own = core.state.withLock { $0.extras.monitors }
    guard !own.isEmpty else { return core.session.eventMonitor }
    return CompositeEventMonitor(monitors: core.session.eventMonitor.monitors + own)
  }

  /// Adds a monitor of this request alone, told after those of the session. It hears what happens from now on: the
  /// events of this request and its handlers, none of the `urlSession(…)` events.
  @discardableResult
  public func eventMonitor(_ monitor: any EventMonitor) -> Self {
    watch { $0.extras.monitors.append(monitor) }
    return self
  }

  /// Adds a monitor of this request alone that hears of the `urlSession(…)` events, too.
  @discardableResult
  package func transferMonitor(_ monitor: any EventMonitor) -> Self {
    watch { $0.extras.transferMonitors.append(monitor) }
    return self
  }
}
