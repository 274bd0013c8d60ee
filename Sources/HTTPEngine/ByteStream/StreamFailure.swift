import Glibc
import HTTPWire

extension ByteStreamFlow.Reason {
  /// Returns the failure of a stream or an operation for this reason.
  ///
  /// - Parameters:
  ///   - host: The host of the stream, for the message.
  ///   - cause: The failure that the connection has reported.
  func failure(of host: String, _ cause: TransportFailure?) -> TransportFailure {
    switch self {
    case .failure: return cause ?? .lost(host, ECONNRESET)
    case .cancelled: return TransportFailure(.cancelled, "The stream was cancelled.")
    case .timedOut: return TransportFailure(.timedOut, "The operation on the stream to \(host) timed out.")
    case .closed:
      return TransportFailure(.connectionLost, "This side of the stream to \(host) is closed.")
    case .alreadySecure:
      return TransportFailure(.secureConnectionFailed, "The stream to \(host) is secure already.")
    case .cleartextLeft:
      return TransportFailure(
        .secureConnectionFailed,
        "\(host) sent more in the clear than was read before the stream was to be secured; an attacker could have sent it."
      )
    case .cutOff:
      return TransportFailure(
        .connectionLost,
        "The stream to \(host) was closed because a write was cancelled before it was complete.")
    }
  }
}
