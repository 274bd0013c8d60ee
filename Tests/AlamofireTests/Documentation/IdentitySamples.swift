import Alamofire
import Foundation

// Samples of the comments on client certificates; see `SampleTests`.

private func identities(data: Data, passphrase: String) throws {
  var options = TransportOptions()
  options.clientIdentity = try ClientIdentity(pkcs12: data, passphrase: passphrase)
  let session = Session(transportOptions: options)
  _ = session
}

private func identityOfARequest(identity: ClientIdentity, session: Session) {
  session.request("https://example.com/").authenticate(with: ClientIdentityCredential(identity))
}
