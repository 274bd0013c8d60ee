import Foundation
import FoundationNetworking

// On Linux two equal protection spaces compare as different objects, so that Foundation finds credentials only for
// the same object. These methods compare the properties of the spaces.
extension URLCredentialStorage {
  /// Returns all credentials for a space.
  func credentials(like space: URLProtectionSpace) -> [URLCredential] {
    stored(like: space).flatMap { allCredentials[$0]?.values.map { $0 } ?? [] }
  }

  /// Returns the default credential of a space.
  func defaultCredential(like space: URLProtectionSpace) -> URLCredential? {
    for stored in stored(like: space) {
      if let credential = defaultCredential(for: stored) { return credential }
    }
    return nil
  }

  private func stored(like space: URLProtectionSpace) -> [URLProtectionSpace] {
    allCredentials.keys.filter { $0.says(what: space) }
  }
}

extension URLProtectionSpace {
  fileprivate func says(what other: URLProtectionSpace) -> Bool {
    host.lowercased() == other.host.lowercased() && port == other.port && self.protocol == other.protocol
      && realm == other.realm && isProxy() == other.isProxy() && means(other.authenticationMethod)
  }

  /// Returns whether the space is for a method. A space that was created without a method matches any method.
  private func means(_ method: String) -> Bool {
    authenticationMethod == method || authenticationMethod == NSURLAuthenticationMethodDefault
  }
}
