import AlamofireV3
import Foundation
import Testing

@Suite("Users who import Foundation as well") struct UsersBesideFoundation {
  @Test("Challenges are distinguished by their methods") func challengeMethods() {
    func name(_ method: String) -> String {
      switch method {
      case NSURLAuthenticationMethodServerTrust: "server"
      case NSURLAuthenticationMethodClientCertificate: "client"
      default: "another"
      }
    }
    #expect(name("NSURLAuthenticationMethodServerTrust") == "server")
    #expect(name("NSURLAuthenticationMethodClientCertificate") == "client")
    #expect(name(NSURLAuthenticationMethodHTTPBasic) == "another")
  }
}
