import HTTPEngine
import HTTPWire

extension Engine {
  /// The domains that no cookie is for.
  static var publicSuffixes: any PublicSuffixes { PublicSuffixList.shared }
}
