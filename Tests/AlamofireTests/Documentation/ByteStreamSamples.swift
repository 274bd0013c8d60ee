import Alamofire
import HTTPTestServer

// Samples of the comments on streams of bytes; see `SampleTests`.

private func mail(session: Session) async throws {
  let stream = session.byteStream(host: "mail.example.com", port: 25)
  let (greeting, _) = try await stream.read()
  try await stream.write(Data("STARTTLS\r\n".utf8))
  _ = try await stream.read()
  try await stream.startTLS()
  print(greeting)
}

private func chat(session: Session) async throws {
  let stream = session.byteStream(host: "irc.example.com", port: 6697, secure: true)
  try await stream.write(Data("NICK ada\r\n".utf8))
  let (line, isAtEnd) = try await stream.read(timeout: .seconds(10))
  print(line, isAtEnd)
}

private func script() throws {
  let server = try StreamTestServer { connection in
    try connection.write("220 ready\r\n")
    guard try connection.line() == "STARTTLS" else { return }
    try connection.write("220 go on\r\n")
    try connection.startTLS(.localhost)
    try connection.echo()
  }
  print(server.port)
}

private func brokenStream() throws {
  var options = TLSOptions()
  options.applicationProtocols = ["h2"]
  let server = try StreamTestServer(.tls(.localhost, options)) { connection in
    let http2 = try HTTP2TestConnection(connection)
    let stream = try http2.request()
    try http2.respond(200, on: stream, endsStream: false)
    try http2.send(Array("half".utf8), on: stream, endsStream: false)
    try http2.reset(stream, .noError)
  }
  print(server.port)
}
