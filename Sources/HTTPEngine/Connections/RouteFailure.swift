import Glibc
import HTTPSystem
import HTTPWire

/// The failures of connections that could not be made, as a user reads them.
enum RouteFailure {
  static func unknownName(_ host: String, _ reason: HostLookup.Failure?) -> TransportFailure {
    switch reason.map({ $0.code == EAI_SYSTEM ? $0.systemError : 0 }) {
    case EMFILE?, ENFILE?: return outOfDescriptors(host, reason?.systemError ?? EMFILE)
    default: break
    }
    // An address with a zone that names no interface of this machine.
    if host.contains(":") {
      return TransportFailure(
        .cannotConnectToHost,
        "The address \(host) cannot be reached; check its zone, which is the name of an interface.")
    }
    let said = reason.map { " (\($0.text))" } ?? ""
    return TransportFailure(
      .cannotFindHost, "The name \(host) could not be found; check its spelling and the DNS settings.\(said)")
  }

  /// Returns the failure of the last address that was tried.
  static func unreachable(_ host: String, _ code: Int32, _ address: IPAddress, port: Int) -> TransportFailure
  {
    if code == EMFILE || code == ENFILE { return outOfDescriptors(host, code) }
    // What the sentence says anyway is not repeated: a host with a colon is an address.
    let isUsual = code == ECONNREFUSED && (host == address.literal || host.contains(":"))
    let detail = isUsual ? "" : " (\(address.literal): \(text(code)))"
    return TransportFailure(
      .cannotConnectToHost,
      "\(host) does not accept the connection; check that the server runs on port \(port).\(detail)")
  }

  static func unreachable(unixSocket path: String, _ code: Int32) -> TransportFailure {
    if code == EMFILE || code == ENFILE { return outOfDescriptors(path, code) }
    return TransportFailure(
      .cannotConnectToHost,
      "The Unix-domain socket \(path) does not accept the connection: \(text(code)). Check its path, and that the server runs."
    )
  }

  static func unusableInterface(_ host: String, _ setting: String) -> TransportFailure {
    TransportFailure(
      .cannotConnectToHost,
      "The local interface or address \(setting) could not be used for \(host) (localInterface).")
  }

  /// Returns the failure of a host that has private addresses only. Retriers must not take it for one that passes.
  static func privateAddress(_ host: String) -> TransportFailure {
    TransportFailure(
      .addressRefused,
      "\(host) has a private address, which refusesPrivateAddresses does not allow. Turn that option off to reach it."
    )
  }

  static func timedOut(_ host: String, in phase: PhaseTimer.Phase) -> TransportFailure {
    TransportFailure(
      .timedOut, "The connection to \(host) timed out; check the network, or raise the connect timeout.",
      phase: phase)
  }

  static func timedOut(unixSocket path: String) -> TransportFailure {
    TransportFailure(
      .timedOut,
      "The server at the Unix-domain socket \(path) did not accept the connection in time, because its queue of connections is full. Raise its backlog, or the connect timeout.",
      phase: .connect)
  }

  static func silent(_ host: String, for limit: Duration) -> TransportFailure {
    TransportFailure(
      .timedOut, "\(host) was silent for \(limit.shownSeconds) (timeoutIntervalForRequest).", phase: .idle)
  }

  static func outOfDescriptors(_ host: String, _ code: Int32) -> TransportFailure {
    let (owner, limits) =
      code == ENFILE
      ? ("machine", "the limits (fs.file-max, ulimit -n)")
      : ("process", "the limit (ulimit -n, LimitNOFILE of systemd)")
    return TransportFailure(
      .resourceUnavailable,
      "No connection to \(host) could be made because the \(owner) has no file descriptors left. Close files and connections, or raise \(limits)."
    )
  }

  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
