import HTTPEngine
package import HTTPWire

/// What the engine has to answer challenges with.
package enum AuthenticationFeatures {
  static let hashes: any HashFunctions = OpenSSLHashes()
  /// The hashes that OpenSSL does not refuse on this machine.
  static let algorithms = Set(DigestChallenge.Algorithm.allCases.filter { hashes.hash($0, []) != nil })
  /// The schemes that libcurl authenticates connections with.
  package static let connectionSchemes = CurlLibrary.shared.connectionSchemes
}

extension FieldDigests {
  /// The fields of a request, with digests by OpenSSL.
  package init(of fields: [HTTPHeader]) { self.init(of: fields, hashes: AuthenticationFeatures.hashes) }
}
