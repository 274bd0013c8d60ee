import COpenSSL
import HTTPWire

extension Conversation {
  /// Performs the opening handshake and the script of the endpoint. Returns how the connection ends.
  func serve(
    _ endpoint: WebSocketEndpoint, _ head: RequestHead, over channel: Channel, input: [UInt8]
  ) throws(Channel.Failure) -> ConnectionEnding {
    let handshake = WebSocketServerHandshake(
      subprotocols: endpoint.subprotocols, deflate: endpoint.compresses ? WebSocketDeflateOptions() : nil)
    let agreement: WebSocketAgreement
    do throws(WebSocketServerHandshake.Refusal) {
      let answer = try handshake.answer(method: head.method, FieldBlock(head.headers), sha1: Self.sha1)
      agreement = answer.agreement
      let kept = answer.fields.filter { field in
        !endpoint.fields.contains { FieldName.equal($0.name, field.name) }
      }
      try? channel.write(ReplyHead.head(status: 101, reason: nil, headers: kept + endpoint.fields))
    } catch {
      let length = HTTPHeader(name: "Content-Length", value: "0")
      try channel.write(
        ReplyHead.head(status: error.status, reason: nil, headers: error.fields + [length]))
      return .close
    }
    let connection = WebSocketTestConnection(
      channel, agreement, input: input, maximumMessageSize: endpoint.maximumMessageSize)
    do {
      try endpoint.script(connection)
    } catch let failure as Channel.Failure {
      throw failure
    } catch {
      // The error only ends the connection; a script reports its failures itself.
    }
    return connection.ending
  }

  private static func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var hash = [UInt8](repeating: 0, count: 20)
    var length: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &hash, &length, EVP_sha1(), nil) == 1 else { return nil }
    return hash
  }
}
