public import Foundation

extension Bundle: AlamofireExtended {}

extension AlamofireExtension where ExtendedType: Bundle {
  /// The certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of the bundle, each DER or PEM, by their paths.
  /// Files that hold none are passed over; `Certificate.all(inFolder:)` tells of them.
  public var certificates: [SecCertificate] {
    paths(forResourcesOfTypes: CertificateFiles.endings).flatMap { path -> [SecCertificate] in
      guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return [] }
      return (try? Certificate.all(in: data)) ?? []
    }
  }

  /// The public keys of `certificates`.
  public var publicKeys: [SecKey] { certificates.compactMap(\.publicKey) }

  /// The paths of all resources with one of these endings, sorted, each once.
  public func paths(forResourcesOfTypes types: [String]) -> [String] {
    Set(types.flatMap { type.paths(forResourcesOfType: $0, inDirectory: nil) }).sorted()
  }
}
