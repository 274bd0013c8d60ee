public import Foundation
public import HTTPWire

extension StrictTransportSecurity {
  /// Makes an empty object in memory.
  ///
  /// - Parameter hostLimit: The most hosts with a policy, without preloaded ones. At the limit, another host is noted
  ///   when a policy has expired, because one host must not evict the policies of others.
  public convenience init(hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit)))
  }

  /// Makes an object with a file, which is read now and written in the background after each change.
  ///
  /// ```swift
  /// let folder = URL(fileURLWithPath: "/var/lib/shop", isDirectory: true)
  /// let hosts = StrictTransportSecurity(file: folder.appendingPathComponent("hosts.txt"))
  /// if let error = hosts.storageError { print(error.localizedDescription) }
  /// ```
  ///
  /// Only its owner can read the file, which contains the names of visited hosts. It is replaced atomically. If two
  /// processes share a file, the last write stays. A file that is broken or cannot be used counts as empty, and
  /// ``storageError`` has the reason. The file does not contain preloaded hosts (``preload(_:includingSubdomains:)``).
  ///
  /// - Parameters:
  ///   - file:      The URL of the file. Its folder is made if it does not exist. The folder must belong to the user of
  ///                the process, and no other user may write to it.
  ///   - hostLimit: The most hosts that are noted, as in ``init(hostLimit:)``.
  public convenience init(file: URL, hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit), at: file))
  }
}

extension AlternativeServices {
  /// Makes an empty object in memory.
  ///
  /// - Parameter originLimit: The most pairs of host and port with services. One more evicts the pair that expires
  ///   first.
  public convenience init(originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit)))
  }

  /// Makes an object with a file, as ``StrictTransportSecurity/init(file:hostLimit:)`` does. The file contains only
  /// services that outlast a change of the network (`persist=1`).
  ///
  /// - Parameters:
  ///   - file:        The URL of the file, in a folder that only this user may write to.
  ///   - originLimit: The most pairs of host and port, as in ``init(originLimit:)``.
  public convenience init(file: URL, originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit), at: file))
  }
}
