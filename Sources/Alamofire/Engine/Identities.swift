import Foundation
import HTTPSystem
import HTTPWire

/// Client identities, as OpenSSL reads them.
enum Identities {
  static func read(pkcs12: Data, passphrase: String) throws(ClientIdentity.Failure) -> ClientIdentity {
    try unwrap(ClientIdentity.read(pkcs12: pkcs12, passphrase: passphrase))
  }

  static func read(
    certificates: Data, privateKey: Data, passphrase: String?
  ) throws(ClientIdentity.Failure) -> ClientIdentity {
    try unwrap(
      ClientIdentity.read(certificates: certificates, privateKey: privateKey, passphrase: passphrase))
  }

  private static func unwrap(
    _ result: Result<ClientIdentity, IdentityFault>
  ) throws(ClientIdentity.Failure) -> ClientIdentity {
    switch result {
    case .success(let identity): return identity
    case .failure(let fault):
      throw switch fault {
      case .unreadable(let detail): .unreadable(detail)
      case .wrongPassphrase: .wrongPassphrase
      case .noCertificate: .noCertificate
      case .noPrivateKey: .noPrivateKey
      case .keyDoesNotMatch: .keyDoesNotMatch
      case .expired: .expired
      case .notYetValid: .notYetValid
      }
    }
  }
}
