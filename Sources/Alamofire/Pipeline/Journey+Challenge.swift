import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Journey {
  /// Stage 2: if the server asks for credentials and the request has some, the next hop brings them. A
  /// challenge that cannot be answered is a response like any other.
  @inline(never)
  func answers(challenge head: ResponseHead) -> Bool {
    guard head.status == 401, let answer = core.answer(to: head, of: request, home: home) else {
      return false
    }
    request = answer
    return true
  }
}

extension RequestCore {
  /// The request with an answer to a Basic challenge (RFC 7617), or `nil` if there is none to give: no
  /// credentials, neither the request's own nor in the session's storage, credentials that were sent already, another scheme, another origin than that of the
  /// user's own request.
  func answer(to head: ResponseHead, of request: WireRequest, home: Origin) -> WireRequest? {
    guard request.origin == home,
      !request.fields.contains(where: { FieldName.equal($0.name, "Authorization") }),
      let offer = head.block.value(of: "WWW-Authenticate"), offer.offersBasic,
      let credential = basicCredential ?? storedCredential(for: request, realm: offer.basicRealm)
    else { return nil }
    let answer = HTTPHeader.authorization(username: credential.user, password: credential.password)
    return request.with(fields: request.fields + [answer])
  }

  /// The one that the session's storage has by default for where the challenge comes from.
  private func storedCredential(for request: WireRequest, realm: String?) -> (user: String, password: String)?
  {
    guard let storage = session.configuration.urlCredentialStorage,
      let space = URLProtectionSpace(challengeTo: request, realm: realm),
      let credential = storage.defaultCredential(like: space), let user = credential.user
    else { return nil }
    return (user, credential.password ?? "")
  }
}

extension URLProtectionSpace {
  /// Where a Basic challenge to a request comes from; `nil` for a URL that Foundation does not read.
  convenience init?(challengeTo request: WireRequest, realm: String?) {
    guard let url = URL(string: request.url), let host = url.host else { return nil }
    let scheme = request.origin.scheme
    self.init(
      host: host, port: url.port ?? (scheme == "https" ? 443 : 80), protocol: scheme, realm: realm,
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
  }
}
