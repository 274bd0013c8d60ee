import HTTPWire

extension Journey {
  /// Stage 2: if the server asks for credentials and the request has some, the next hop brings them. A
  /// challenge that cannot be answered is a response like any other: no credentials, credentials that were
  /// sent already, another scheme than Basic (RFC 7617), another origin than the user's own.
  @inline(never)
  func answers(challenge head: ResponseHead) -> Bool {
    guard head.status == 401, request.origin == home,
      !request.fields.contains(where: { FieldName.equal($0.name, "Authorization") }),
      let credential = core.basicCredential,
      head.block.value(of: "WWW-Authenticate")?.offersBasic == true
    else { return false }
    let answer = HTTPHeader.authorization(username: credential.user, password: credential.password)
    request = request.with(fields: request.fields + [answer])
    return true
  }
}
