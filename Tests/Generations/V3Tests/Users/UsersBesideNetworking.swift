import AlamofireV3
import Foundation
import FoundationNetworking
import Testing

@Suite("Users who import FoundationNetworking as well") struct UsersBesideNetworking {
  private func space(_ method: String) -> URLProtectionSpace {
    URLProtectionSpace(
      host: "localhost", port: 443, protocol: "https", realm: nil, authenticationMethod: method)
  }

  @Test("Challenges are distinguished by their methods") func challengeMethods() {
    let server = space("NSURLAuthenticationMethodServerTrust")
    #expect(server.authenticationMethod == NSURLAuthenticationMethodServerTrust)
    #expect(server.authenticationMethod != NSURLAuthenticationMethodClientCertificate)
    let client = space("NSURLAuthenticationMethodClientCertificate")
    #expect(client.authenticationMethod == NSURLAuthenticationMethodClientCertificate)
  }
}
