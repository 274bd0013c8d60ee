import Foundation
public import FoundationNetworking

extension URLSessionConfiguration {
  /// The configuration of a background session. There are none on Linux: its requests end with the process, as those
  /// of a default one, and the identifier is not used. Foundation's own `background(withIdentifier:)` ends the
  /// program.
  public static func backgroundSessionConfigurationWithIdentifier(
    _ identifier: String
  ) -> URLSessionConfiguration {
    .default
  }
}
