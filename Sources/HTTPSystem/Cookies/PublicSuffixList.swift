import CPSL
import HTTPWire

/// The Mozilla project's list of public suffixes, as libpsl provides it.
///
/// The system's copy of the list is used if it is newer than the one inside the library.
package final class PublicSuffixList: PublicSuffixes {
  /// Read on first use, once in a process.
  package static let shared = PublicSuffixList()

  // `nonisolated(unsafe)` because it is a pointer. libpsl only reads a list once it is loaded.
  private nonisolated(unsafe) let list: OpaquePointer?

  private init() {
    list = psl_latest(nil)
  }

  deinit { psl_free(list) }

  /// Whether there is a list. Without one, only domains of one label are public suffixes.
  package var isThere: Bool { list != nil }

  /// Whether names are registered directly below `domain`, so that cookies for all of it are forbidden.
  ///
  /// - Parameter domain: A domain in ASCII and lower case, without a leading dot.
  package func isPublicSuffix(_ domain: String) -> Bool {
    guard let list else { return TopLevelSuffixes().isPublicSuffix(domain) }
    return psl_is_public_suffix(list, domain) == 1
  }
}
