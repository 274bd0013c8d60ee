import CCurl
import Glibc
package import HTTPWire

extension CurlFailure {
  /// The failure of a transfer for which no file descriptor was left; `nil` when it failed for another reason.
  ///
  /// libcurl reports such a transfer as a host that cannot be connected to or found, and tells no reason (7.88).
  ///
  /// - Parameters:
  ///   - systemError: The `errno` of the last attempt to connect; 0 when there was none (`CURLINFO_OS_ERRNO`).
  ///   - probe: Returns the `errno` of an attempt to get some descriptors; `nil` when they are there.
  package static func lackOfDescriptors(
    _ code: Int32, host: String, systemError: Int32, metrics: TransferMetrics?,
    probe: (_ count: Int) -> Int32? = descriptorProbe
  ) -> TransportFailure? {
    let reason: Int32? =
      switch CURLcode(UInt32(bitPattern: code)) {
      case CURLE_COULDNT_CONNECT where systemError != 0: systemError
      case CURLE_COULDNT_CONNECT: probe(1)
      // The sockets and files of the resolver are closed again.
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: probe(4)
      default: nil
      }
    switch reason {
    case EMFILE:
      return TransportFailure(
        .resourceUnavailable,
        "No connection to \(host) could be made because the process has no file descriptors left. "
          + "Close files and connections, or raise the limit (ulimit -n, LimitNOFILE of systemd).",
        curlCode: code, metrics: metrics)
    case ENFILE:
      return TransportFailure(
        .resourceUnavailable,
        "No connection to \(host) could be made because the machine has no file descriptors left. "
          + "Close files and connections, or raise the limits (fs.file-max, ulimit -n).",
        curlCode: code, metrics: metrics)
    default: return nil
    }
  }

  /// Opens some descriptors and closes them.
  package static func descriptorProbe(_ count: Int) -> Int32? {
    var opened: [Int32] = []
    defer { for descriptor in opened { close(descriptor) } }
    for _ in 0..<count {
      let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return errno }
      opened.append(descriptor)
    }
    return nil
  }
}
