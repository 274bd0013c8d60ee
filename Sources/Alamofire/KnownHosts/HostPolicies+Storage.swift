public import Foundation
public import HTTPWire

extension StrictTransportSecurity {
  /// Makes an empty one, kept in memory.
  ///
  /// - Parameter hostLimit: The most hosts that are noted, without those that the program names. When there are as many,
  ///   others are noted when some have expired: what one host says does not push out what others have said.
  public convenience init(hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit)))
  }

  /// Makes one that is kept in a file, which is read now, and written in the background whenever something has changed.
  ///
  /// ```swift
  /// let folder = URL(fileURLWithPath: "/var/lib/shop", isDirectory: true)
  /// let hosts = StrictTransportSecurity(file: folder.appendingPathComponent("hosts.txt"))
  /// if let error = hosts.storageError { print(error.localizedDescription) }
  /// ```
  ///
  /// Only its owner can read the file, which names the hosts that have been visited. It is replaced as a whole, so that
  /// nobody ever reads half of it; of two processes with one file, the one that writes last is right. A file that is
  /// broken, or cannot be used, is an empty one, and ``storageError`` says why. What the program names itself
  /// (``preload(_:includingSubdomains:)``) is not in it.
  ///
  /// - Parameters:
  ///   - file:      The URL of the file. Its folder is made when needed; it must belong to the user of the process, and
  ///                nobody else may write to it.
  ///   - hostLimit: The most hosts that are noted, as in ``init(hostLimit:)``.
  public convenience init(file: URL, hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit), at: file))
  }
}

extension AlternativeServices {
  /// Makes an empty one, kept in memory.
  ///
  /// - Parameter originLimit: The most pairs of host and port for which places are noted; more push out those that
  ///   expire first.
  public convenience init(originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit)))
  }

  /// Makes one that is kept in a file, as ``StrictTransportSecurity/init(file:hostLimit:)`` does. Only places are kept
  /// that the server wants to outlast a change of the network (`persist=1`).
  ///
  /// - Parameters:
  ///   - file:        The URL of the file, in a folder of one's own.
  ///   - originLimit: The most pairs of host and port, as in ``init(originLimit:)``.
  public convenience init(file: URL, originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit), at: file))
  }
}
