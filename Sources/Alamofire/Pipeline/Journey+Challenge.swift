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
  /// credentials, credentials that were sent already, another scheme, another origin than that of the
  /// user's own request.
  func answer(to head: ResponseHead, of request: WireRequest, home: Origin) -> WireRequest? {
    guard request.origin == home,
      !request.fields.contains(where: { FieldName.equal($0.name, "Authorization") }),
      let credential = basicCredential,
      head.block.value(of: "WWW-Authenticate")?.offersBasic == true
    else { return nil }
    let answer = HTTPHeader.authorization(username: credential.user, password: credential.password)
    return request.with(fields: request.fields + [answer])
  }
}
