import CPSL
import HTTPWire

/// The Mozilla project's list of public suffixes, as libpsl has it: the system's copy when that is newer than
/// the one inside the library.
package final class PublicSuffixList: PublicSuffixes {
  /// Read on first use, once in a process.
  package static let shared = PublicSuffixList()

  // Unchecked: libpsl only reads a list once it is loaded.
  private nonisolated(unsafe) let list: OpaquePointer?

  private init() {
    list = psl_latest(nil)
  }

  deinit { psl_free(list) }

  /// Whether there is a list; without one, only domains of one label are public.
  package var isThere: Bool { list != nil }

  package func isPublicSuffix(_ domain: String) -> Bool {
    guard let list else { return TopLevelSuffixes().isPublicSuffix(domain) }
    return psl_is_public_suffix(list, domain) == 1
  }
}
